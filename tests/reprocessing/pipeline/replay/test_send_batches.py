"""Letters are sent with their bytes and attributes, and poison does not stop its batch."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.gateways.sqs import receiving
from reprocessing.models import Attempt, Payload, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.replay.intent import IntendedSend
from tests.reprocessing.pipeline.bench import BRISK, Workbench, redriven

pytestmark = pytest.mark.django_db(transaction=True)

ADDED = {"RedriveId", "IdempotencyKey", "OriginalMessageId", "ReprocessedFrom"}
OF_EVERY_TYPE: dict[str, Any] = {
    "text": {"DataType": "String", "StringValue": "ä\u2028\U0001f600 \t"},
    "labelled": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "number": {"DataType": "Number", "StringValue": "-1.50e10"},
    "integer": {"DataType": "Number.int", "StringValue": "007"},
    "binary": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    "picture": {"DataType": "Binary.png", "BinaryValue": b"\x89PNG\x00\xff"},
}


def _through(bench: Workbench, body: str, attributes: dict[str, Any], **system: object) -> dict[str, Any]:
    group = {"MessageGroupId": "account-7", "MessageDeduplicationId": uuid.uuid4().hex} if bench.fifo else {}
    bench.sqs.send_message(
        QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=attributes, **group, **system
    )  # fmt: skip
    bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    return sent


@pytest.mark.parametrize("fifo", [False, True])
def test_body_and_attributes_of_every_type_arrive_unchanged(fifo: bool) -> None:
    bench = Workbench(fifo=fifo)
    body = '{"n":\t1.0,\r\n "t": " ä \U0001f600\u2028"}  '
    sent = _through(bench, body, OF_EVERY_TYPE)
    assert sent["Body"] == body
    assert {name: value for name, value in sent["MessageAttributes"].items() if name not in ADDED} == OF_EVERY_TYPE
    assert set(sent["MessageAttributes"]) >= ADDED


def test_the_redrive_attributes_name_letter_attempt_and_dlq() -> None:
    bench = Workbench()
    sent = _through(bench, "letter", {})
    letter = bench.letter()
    assert {name: value["StringValue"] for name, value in sent["MessageAttributes"].items()} == {
        "RedriveId": f"{letter.public_id}:1",
        "IdempotencyKey": letter.message_id,
        "OriginalMessageId": letter.message_id,
        "ReprocessedFrom": bench.name,
    }


@pytest.mark.parametrize(("own", "added"), [(10, []), (9, ["RedriveId"]), (8, ["IdempotencyKey", "RedriveId"])])
def test_the_letter_s_own_attributes_come_first_and_ten_are_the_limit(own: int, added: list[str]) -> None:
    bench = Workbench()
    attributes = {f"own{number}": {"DataType": "String", "StringValue": str(number)} for number in range(own)}
    sent = _through(bench, "letter", attributes)["MessageAttributes"]
    assert {name: value for name, value in sent.items() if name in attributes} == attributes
    assert sorted(sent.keys() - attributes.keys()) == added


def test_a_letter_sent_again_has_one_redrive_id() -> None:
    bench = redriven("letter")
    bench.take_back(bench.delivered()[0])
    bench.replay()
    (sent,) = bench.delivered()
    assert set(sent["MessageAttributes"]) == ADDED
    assert sent["MessageAttributes"]["RedriveId"]["StringValue"] == f"{bench.letter().public_id}:2"


TEN, PLACE = 10, 4


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The message ids of each batch, whose letters are sent in the order in which they died."""
    made: list[list[str]] = []
    post = send_batches.letters

    def ordered(intended: Sequence[IntendedSend], *args: Any, **options: Any) -> Any:  # noqa: ANN401  # handed through
        going = sorted(intended, key=lambda letter: letter.letter_id)
        made.append([letter.message_id for letter in going])
        return post(going, *args, **options)

    monkeypatch.setattr(send_batches, "letters", ordered)
    return made


def _bury_among_nine(poison: str) -> tuple[Workbench, str]:
    """Ten messages that travel in one batch; the id of the poison message."""
    bench = Workbench(conf=replace(BRISK, intent_size=TEN))
    return bench, bench.bury_all(*(poison if place == PLACE else "mate" for place in range(TEN)))[PLACE]


def _assert_refused(bench: Workbench, poison: str, trips: list[list[str]], detail: str) -> None:
    letter = bench.letter(message_id=poison)
    assert (letter.state, letter.reason, letter.attempts) == ("parked", ParkedReason.REFUSED, 1)
    assert detail in letter.detail
    assert [trip.index(poison) for trip in trips] == [PLACE]
    assert (bench.delivered_bodies(), bench.left()) == (["mate"] * (TEN - 1), 0)


def test_a_message_above_the_size_limit_of_its_target_is_not_tried() -> None:
    bench, poison = _bury_among_nine("p" * 1_025)
    Target.objects.update(size_limit=1_024)
    bench.ready()
    bench.replay()
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    letter = bench.letter(message_id=poison)
    assert (letter.state, letter.detail) == ("parked", "1,025 bytes; the target takes 1,024")
    assert (Attempt.objects.count(), len(bench.delivered()), bench.left()) == (TEN - 1, TEN - 1, 0)


def test_half_a_surrogate_pair_is_kept_and_parked(trips: list[list[str]]) -> None:
    """The local SQS accepts no such message, so a client returns one."""
    bench, poison = _bury_among_nine("half")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receiving, "client", lambda *_, **__: _Halving(bench.sqs))
        bench.capture()
    assert bytes(Payload.objects.get(letter__message_id=poison).body) == b"\xed\xa0\x80"
    bench.enlist()
    bench.replay()
    _assert_refused(bench, poison, trips, "InvalidMessageContents: ")


class _Halving:
    """A client that returns half a surrogate pair in place of the body "half"."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  # boto3's
        self._client = client

    def receive_message(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401  # boto3's
        answer: dict[str, Any] = self._client.receive_message(**asked)
        for message in answer.get("Messages", []):
            message["Body"] = message["Body"].replace("half", "\ud800")
        return answer
