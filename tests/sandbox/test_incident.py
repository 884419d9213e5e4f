"""The demo's incident against a service made of nothing: what it asks, what it believes, and what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import boto3
import pytest
from django.core.management.base import CommandError

from redrive_service.sandbox import incident
from redrive_service.sandbox.incident import Incident, TheyAreNotBack, books_of
from redrive_service.sandbox.judge import Books
from redrive_service.sandbox.management.commands.sandbox import refuse_what_does_not_fit
from redrive_service.sandbox.stack import LOOPBACK

LETTERS = 20


class Service:
    """Takes every letter out of the dlq and says of each that it is in the state it was told to say."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.asked: list[Sequence[str]] = []
        self.letters: set[str] = set()

    def manage(self, *arguments: str) -> str:
        self.asked.append(arguments)
        if arguments[0] == "add_dlq":
            self.empty(arguments[arguments.index("--url") + 1])
        finished = self.state in ("parked", "delivered")
        told: dict[str, object] = {
            "letters": {"captured": 0, self.state: len(self.letters)},
            "unfinished": 0 if finished else len(self.letters),
        }
        if "--letters" in arguments:
            told["states"] = dict.fromkeys(self.letters, self.state)
        return json.dumps({"dlqs": [told]})

    def empty(self, url: str) -> None:
        client = boto3.client("sqs")
        while received := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in received:
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                self.letters.add(message["MessageId"])
        client.close()


seeds = count(1)


def incident_with(service: Service, folder: Path, said: list[str]) -> Incident:
    return Incident(folder, os.environ, manage=service.manage, say=said.append, seed=next(seeds))


def test_a_service_that_parks_everything_has_kept_its_promises(tmp_path: Path) -> None:
    said: list[str] = []
    service = Service("parked")
    summary = incident_with(service, tmp_path, said).run(LETTERS)
    assert summary.kept
    figures = summary.figures()
    assert (figures["letters"], figures["parked"], figures["lost"]) == (LETTERS, LETTERS, 0)
    assert f"  {LETTERS} parked" in said
    assert service.asked[0][:2] == ("add_dlq", service.asked[1][1])
    assert service.asked[-1] == ("redrive_status", service.asked[0][1], "--json", "--letters")


def test_a_service_that_says_delivered_and_delivered_nothing_is_not_believed(tmp_path: Path) -> None:
    summary = incident_with(Service("delivered"), tmp_path, []).run(LETTERS)
    assert not summary.kept
    assert summary.figures()["lost"] == LETTERS
    assert summary.sentences()[1].startswith(
        f"The judge, from the call log and the consumer's log: lost {LETTERS}, duplicates 0, order violations 0,"
    )


def test_letters_that_are_never_finished_are_waited_for_no_longer_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incident, "WITHIN", 0.0)
    with pytest.raises(TheyAreNotBack, match=f"not every letter of shop-.* is finished: {LETTERS} waiting"):
        incident_with(Service("waiting"), tmp_path, []).run(LETTERS)


def test_a_letters_state_is_what_the_judge_takes_for_the_services_word() -> None:
    states = {"a": "parked", "b": "discarded", "c": "duplicate", "d": "delivered", "e": "captured", "f": "awaiting"}
    assert books_of(states) == Books(
        parked=frozenset("a"), discarded=frozenset("b"), duplicates=frozenset("c"), open=frozenset("ef")
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"letters": 10}, "--letters is for --demo: without it there is nobody to bring them back."),
        ({"json": True}, "--json prints the figures of --demo's incident. Add --demo."),
    ],
)
def test_an_incident_without_what_it_needs_is_refused(options: dict[str, object], sentence: str) -> None:
    told = {"only": None, "demo": False, "host": LOOPBACK, "web_port": 0, "letters": 0, "json": False, **options}
    with pytest.raises(CommandError, match=sentence):
        refuse_what_does_not_fit(told)
