"""The whole night: everything dies, the consumer is mended, and a careful redrive is told from a careless one."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import boto3
import pytest

from redrive_service.sandbox.judge import Offence, ServiceRecords
from redrive_service.sandbox.shop.world import Shop
from tests.conditions import eventually

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueTypeDef,
        MessageTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

LETTERS = 60


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    name = f"shop-{uuid4()}"
    with Shop(tmp_path, environment=os.environ, letters=LETTERS, seed=4, name=name) as shop:
        shop.publish()
        shop.break_down()
        shop.await_dead(within=30)
        shop.mend()
        yield shop


@pytest.fixture
def client() -> Iterator[SQSClient]:
    with closing(boto3.client("sqs")) as client:
        yield client


class Redrive:
    """The simplest redrive there is: letter after letter, waiting for each."""

    def __init__(self, shop: Shop, client: SQSClient) -> None:
        self.shop = shop
        self.client = client
        self.parked: set[str] = set()
        self.duplicates: set[str] = set()
        self._done: set[str] = set()

    def capture(self) -> list[MessageTypeDef]:
        letters: dict[str, MessageTypeDef] = {}
        while answer := self.client.receive_message(
            QueueUrl=self.shop.dlq_url, MaxNumberOfMessages=10, VisibilityTimeout=300, MessageAttributeNames=["All"]
        ).get("Messages"):
            letters.update((message["MessageId"], message) for message in answer)
        return sorted(letters.values(), key=lambda letter: int(value(letter, "sequence")))

    def send(self, *letters: MessageTypeDef) -> list[str]:
        entries = [entry(number, letter) for number, letter in enumerate(letters)]
        answer = self.client.send_message_batch(QueueUrl=self.shop.source_url, Entries=entries)
        return [sent["MessageId"] for sent in answer["Successful"]]

    def settle(self, letter: MessageTypeDef) -> None:
        self.client.delete_message(QueueUrl=self.shop.dlq_url, ReceiptHandle=letter["ReceiptHandle"])

    def outcomes(self) -> dict[str, str]:
        return {line["message_id"]: line["outcome"] for line in self.shop.consumed()}

    def replay(self, lane: list[MessageTypeDef]) -> None:
        """One lane in order; what the consumer cannot handle is parked at its first return."""
        for letter in lane:
            if value(letter, "event_id") in self._done:
                self.duplicates.add(letter["MessageId"])
            else:
                self._deliver(letter)
            self.settle(letter)

    def _deliver(self, letter: MessageTypeDef) -> None:
        (sent,) = self.send(letter)
        if eventually(lambda: self.outcomes().get(sent), within=10) == "ok":
            self._done.add(value(letter, "event_id"))
            eventually(lambda: self._is_consumed(sent), within=10)
        else:
            returned = eventually(lambda: self._returned(sent), within=20)
            assert returned is not None
            self.settle(returned)
            self.parked.add(letter["MessageId"])

    def _is_consumed(self, message_id: str) -> bool:
        calls = self.shop.calls()
        return any(entry["message_id"] == message_id and entry["took_effect"] for c in calls for entry in c["deleted"])

    def _returned(self, message_id: str) -> MessageTypeDef | None:
        answer = self.client.receive_message(QueueUrl=self.shop.dlq_url, MaxNumberOfMessages=10, VisibilityTimeout=300)
        return next((one for one in answer.get("Messages", []) if one["MessageId"] == message_id), None)

    def books(self) -> ServiceRecords:
        return ServiceRecords(parked=frozenset(self.parked), duplicates=frozenset(self.duplicates))


def entry(number: int, letter: MessageTypeDef) -> SendMessageBatchRequestEntryTypeDef:
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        name: {"DataType": "String", "StringValue": one["StringValue"]}
        for name, one in letter["MessageAttributes"].items()
    }
    attributes["RedriveId"] = {"DataType": "String", "StringValue": f"{UUID(letter['MessageId'])}:1"}
    return {"Id": str(number), "MessageBody": letter["Body"], "MessageAttributes": attributes}


def value(letter: MessageTypeDef, name: str) -> str:
    return letter["MessageAttributes"][name]["StringValue"]


@pytest.mark.soak
def test_a_careful_redrive_is_found_clean_and_every_letter_accounted_for(shop: Shop, client: SQSClient) -> None:
    redrive = Redrive(shop, client)
    lanes: dict[str, list[MessageTypeDef]] = defaultdict(list)
    for letter in redrive.capture():
        lanes[value(letter, "account")].append(letter)
    for lane in lanes.values():
        redrive.replay(lane)
    judgement = shop.judged(shop.experiment(max_attempts=1, rate=1000, burst=1000, cooldown=1), redrive.books())
    counts = judgement.counts()
    assert judgement.findings == ()
    assert counts["letters"] == LETTERS == counts["delivered"] + counts["parked"] + counts["closed_as_duplicate"]
    assert (counts["parked"], counts["closed_as_duplicate"]) == (1, 1)
    assert counts["returns"] == 1


@pytest.mark.soak
def test_a_careless_redrive_is_found_out(shop: Shop, client: SQSClient) -> None:
    redrive = Redrive(shop, client)
    letters = sorted(redrive.capture(), key=lambda letter: value(letter, "account"), reverse=True)
    for first in range(0, LETTERS, 10):
        redrive.send(*reversed(letters[first : first + 10]))
    for letter in letters:
        redrive.settle(letter)
    eventually(lambda: len(redrive.outcomes()) >= LETTERS, within=20)
    judgement = shop.judged(shop.experiment(max_attempts=1, rate=5, burst=5, cooldown=1), ServiceRecords())
    broken = {finding.offence for finding in judgement.findings}
    assert broken >= {Offence.DUPLICATE, Offence.REORDERED, Offence.OVERLAP, Offence.OVER_RATE, Offence.OVER_WAVE}


@pytest.mark.soak
def test_sqs_can_be_told_to_deliver_twice(shop: Shop, client: SQSClient) -> None:
    shop.deliver_twice()
    redrive = Redrive(shop, client)
    assert len(redrive.capture()) == LETTERS
    extra = [entry["message_id"] for call in shop.calls() for entry in call["received"] if entry["extra"]]
    assert 1 <= len(extra) <= 10
