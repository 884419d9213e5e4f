"""The demo's incident against a service made of nothing: what it asks, what it believes, and what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from django.core.management.base import CommandError

from redrive_service.sandbox.incident import incident
from redrive_service.sandbox.incident.incident import (
    WITHIN,
    Incident,
    IncidentTimedOut,
    Service,
    StatusCommandEnded,
    Summary,
    records_of,
)
from redrive_service.sandbox.incident.observed_brakes import ObservedBrakes
from redrive_service.sandbox.incident.scenario import Scenario
from redrive_service.sandbox.judge import BreakerOpening, Experiment, ServiceRecords, judge
from redrive_service.sandbox.management.commands.sandbox import refuse_what_does_not_fit
from redrive_service.sandbox.stack import LOOPBACK

if TYPE_CHECKING:
    from redrive_service.sandbox.shop.world import Shop

LETTERS = 20


class Told:
    """Takes every letter out of the dlq and says of each that it is in the state it was told to say."""

    def __init__(self, state: str, *, falls_silent: bool = False) -> None:
        self.state = state
        self.falls_silent = falls_silent
        self.asked: list[Sequence[str]] = []
        self.letters: set[str] = set()
        self.looks = ""
        self.stopped = False

    def manage(self, *arguments: str) -> str:
        self.asked.append(arguments)
        if arguments[0] == "add_dlq":
            self.empty(arguments[arguments.index("--url") + 1])
        return json.dumps({"dlqs": [{"states": dict.fromkeys(self.letters, self.state)}]})

    def watch(self, *arguments: str) -> Told:
        self.asked.append(arguments)
        return self

    def log_since_start(self) -> str:
        unfinished = 0 if self.state in ("parked", "delivered") else len(self.letters)
        counts = {"captured": 0, self.state: len(self.letters)}
        look = {"messages": counts, "unfinished": unfinished, "runs": [], "targets": [], "parked": {}}
        self.looks += "a warning\n" + json.dumps({"dlqs": [look]}) + "\n"
        return self.looks + '{"dlqs": [{"half a li'

    def has_ended(self) -> bool:
        return self.falls_silent

    def stop(self) -> None:
        self.stopped = True

    def empty(self, url: str) -> None:
        client = boto3.client("sqs")
        while received := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in received:
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                self.letters.add(message["MessageId"])
        client.close()


seeds = count(1)


def incident_with(told: Told, folder: Path, said: list[str]) -> Incident:
    service = Service(manage=told.manage, watch=told.watch)
    return Incident(folder, os.environ, service=service, say=said.append, seed=next(seeds))


def run(incident: Incident, letters: int) -> Summary:
    with ExitStack() as closing:
        return incident.run(letters, closing)


@pytest.mark.soak
def test_a_service_that_parks_everything_has_kept_its_promises(tmp_path: Path) -> None:
    said: list[str] = []
    told = Told("parked")
    summary = run(incident_with(told, tmp_path, said), LETTERS)
    assert summary.kept
    figures = summary.figures()
    assert (figures["messages"], figures["parked"], figures["lost"]) == (LETTERS, LETTERS, 0)
    assert f"  {LETTERS} parked" in said
    name = told.asked[0][1]
    assert [(one[0], one[1]) for one in told.asked] == [
        ("add_dlq", name), ("redrive_status", name), ("redrive_status", name),
    ]  # fmt: skip
    assert told.asked[1][2:4] == ("--json", "--watch")
    assert told.asked[2][2:] == ("--json", "--messages")
    assert told.stopped


@pytest.mark.soak
def test_a_service_that_says_delivered_and_delivered_nothing_is_not_believed(tmp_path: Path) -> None:
    summary = run(incident_with(Told("delivered"), tmp_path, []), LETTERS)
    assert not summary.kept
    assert summary.figures()["lost"] == LETTERS
    assert summary.sentences()[1].startswith(
        f"The judge read the call log and the consumer's log, and found faults: lost {LETTERS}, processed twice 0,"
    )


def test_a_slow_service_has_its_whole_time_again_with_each_message_that_it_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def reports() -> Iterator[dict[str, Any]]:
        for left in (3, 2, 1, 0):
            now[0] += 0.9 * WITHIN
            counts = {"waiting": left, "delivered": 3 - left}
            yield {"messages": counts, "unfinished": left, "runs": [], "targets": [], "parked": {}}

    slow = incident_with(Told("waiting"), tmp_path, said := list[str]())
    monkeypatch.setattr(incident, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(slow, "_status_reports", reports)
    shop = cast("Shop", SimpleNamespace(shows_brakes=False))
    slow._await_finished(3, Scenario(shop, dlq="shop", manage=str, say=said.append))
    assert said[-1] == "  3 delivered"


@pytest.mark.soak
def test_letters_that_are_never_finished_are_waited_for_no_longer_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incident, "WITHIN", 0.0)
    with pytest.raises(IncidentTimedOut, match=f"no further message of shop-.* was finished: {LETTERS} queued"):
        run(incident_with(Told("waiting"), tmp_path, []), LETTERS)


def test_a_service_that_says_nothing_more_is_not_waited_for(tmp_path: Path) -> None:
    told = Told("waiting", falls_silent=True)
    with pytest.raises(StatusCommandEnded, match="redrive_status --watch has ended"):
        list(incident_with(told, tmp_path, [])._status_reports())
    assert told.stopped


@pytest.mark.parametrize("demanded", [False, True])
def test_brakes_that_were_not_seen_are_a_failure_where_there_were_letters_enough(*, demanded: bool) -> None:
    judgement = judge(Experiment(sources=frozenset(), dlqs=frozenset()), [])
    summary = Summary(judgement, 0, 1.0, ObservedBrakes(waves=[1], quarantined=3), demanded=demanded)
    assert summary.kept is not demanded
    assert ("  Not seen at work: a ramp that rises." in summary.sentences()) is demanded
    figures = summary.figures()
    assert [figures[name] for name in ("opened", "canaries", "quarantined", "waves")] == [0, 0, 3, [1]]


def test_a_letters_state_is_what_the_judge_takes_for_the_services_word() -> None:
    states = {"a": "parked", "b": "discarded", "c": "duplicate", "d": "delivered", "e": "captured", "f": "awaiting"}
    openings = (BreakerOpening(opened=1.0, closed=2.0),)
    assert records_of(states, openings) == ServiceRecords(
        parked=frozenset("a"),
        discarded=frozenset("b"),
        duplicates=frozenset("c"),
        open=frozenset("ef"),
        openings=openings,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"messages": 10}, "--messages is for --demo: without it there is no incident."),
        ({"json": True}, "--json prints the figures of --demo's incident. Add --demo."),
    ],
)
def test_an_incident_without_what_it_needs_is_refused(options: dict[str, object], sentence: str) -> None:
    told = {"only": None, "demo": False, "host": LOOPBACK, "web_port": 0, "messages": 0, "json": False, **options}
    with pytest.raises(CommandError, match=sentence):
        refuse_what_does_not_fit(told)
