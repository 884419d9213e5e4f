"""The verdict over tables and logs that are made up: what must not be, it says; what may be, it lets pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from reprocessing.models import AuditEntry, Letter, Payload
from reprocessing.store.safety.paused_runs import THE_SERVICE
from tests.proof.simulation.cast import Cast
from tests.proof.simulation.house import Buckets
from tests.proof.simulation.near import Near
from tests.proof.simulation.outage import Outage
from tests.proof.simulation.plot import BEGIN, Event, plot
from tests.proof.simulation.stage import Stage
from tests.proof.simulation.verdict import EPOCH, judged
from tests.reprocessing.store.safety.history import History

pytestmark = pytest.mark.django_db

#: Seconds after the beginning at which the outage ends; and for which nothing has to go well before a run gives up.
OUTAGE, PATIENCE = 600.0, 60.0
MOST = 3  # attempts
LASTING = Outage(((0.0, OUTAGE),))
FLAPPING = Outage(((0.0, OUTAGE), (700.0, 800.0)))
HALF = Outage(((0.0, OUTAGE),), frozenset({"k0"}))
GAVE_UP = "No message to source succeeded: 9 attempts in 60 s failed, for 3 ordering keys."


class World:
    """A world that is over, with one letter, of one event. Moments are seconds after its beginning."""

    def __init__(self, *, body: str = "body of e0", **changed: Any) -> None:  # noqa: ANN401  fields of a plot
        self.history = History()
        (self.letter,) = self.history.more_letters(1)
        Payload.objects.create(letter=self.letter, body=body.encode(), attributes=b"{}", system={})
        stage = Stage()
        near = Near(stage)
        near.begin(0)
        calm = plot(0)
        self.plot = replace(
            calm, fifo=False, keyed=False, meddles=False, outage=LASTING,
            events=(
                Event(name="e0", key="k0", n=1, temper="well", at=0.0),
                Event(name="e1", key="k1", n=1, temper="poison", at=0.0),
            ),
            dlq={**calm.dlq, "max_attempts": MOST, "give_up_after": PATIENCE, "stale": "park"},
            target={**calm.target, "proof": "absence", "rate": None},
        )  # fmt: skip
        self.plot = replace(self.plot, **changed)
        self.cast = Cast(stage, near, Buckets(stage), self.plot, self.history.dlq.pk, "", "")

    def failed(self, *times: tuple[float, float], **fields: Any) -> None:  # noqa: ANN401  as `tried` takes them
        for sent, back in times:
            self.history.tried("r", self.letter, opened_at=at(sent), closed_at=at(back), returned_at=at(back), **fields)

    def went_well(self, sent: float, known: float, **fields: Any) -> None:  # noqa: ANN401  as `tried` takes them
        self.history.tried("v", opened_at=at(sent), closed_at=at(known), **fields)

    def paused(self, when: float, reason: str, *, by: str = THE_SERVICE) -> None:
        AuditEntry.objects.create(act="paused", run=self.history.run, by=by, reason=reason, at=at(when))

    def taken(self, often: int) -> None:
        near, public = self.cast.near, str(self.letter.public_id)
        url = near.create_queue(QueueName="source")["QueueUrl"]
        for no in range(often):
            marks = {"event": "e0", "RedriveId": f"{public}:{no + 1}"}
            typed = {name: {"DataType": "String", "StringValue": mark} for name, mark in marks.items()}
            near.send_message(QueueUrl=url, MessageBody="body of e0", MessageAttributes=typed)

    def is_spent(self, when: float = 0.0, detail: str = "") -> None:
        parked = {"state": "parked", "reason": "attempts_spent", "detail": detail, "finished_at": at(when)}
        Letter.objects.filter(pk=self.letter.pk).update(**parked)

    def said(self, about: str) -> list[str]:
        return [sentence for sentence in judged(self.cast, _ask).broken if about in sentence]


def at(seconds: float) -> datetime:
    """The moment, so many seconds after the beginning."""
    return EPOCH + timedelta(seconds=BEGIN + seconds)


def _ask(question: str, *values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401  whatever Postgres takes
    with connection.cursor() as cursor:
        cursor.execute(question, values)
        return list(cursor.fetchall())


# -- an outage uses up no attempt

IN_IT = ((1.0, 2.0), (10.0, 12.0), (100.0, 102.0))


@pytest.mark.parametrize(
    ("third", "fields", "is_told"),
    [
        ([IN_IT[2]], {}, True),
        ([], {}, False),
        ([IN_IT[2]], {"spared": True}, False),
        ([(599.0, OUTAGE + 1)], {}, False),
        ([(-1.0, 2.0)], {}, False),
    ],
    ids=["three", "two, as may be at its edges", "one spared", "one back after it", "one sent before it"],
)
def test_three_attempts_that_count_and_failed_in_one_outage_are_told(
    third: list[tuple[float, float]], fields: dict[str, object], is_told: bool
) -> None:
    world = World()
    world.failed(*IN_IT[:2])
    world.failed(*third, **fields)
    told = [f"An outage used up 3 attempts of letter {world.letter.message_id}."]
    assert world.said("used up") == (told if is_told else [])


@pytest.mark.parametrize(
    "changed",
    [
        {"outage": FLAPPING}, {"outage": HALF}, {"outage": Outage()}, {"meddles": True},
        {"body": "body of e1"}, {"target": {"proof": "accepted", "rate": None, "advance": "accepted"}},
    ],
    ids=["it flaps", "half of the keys", "none", "a person meddles", "poison", "a success that is known at once"],
)  # fmt: skip
def test_attempts_count_where_more_than_one_outage_explains_them(changed: dict[str, Any]) -> None:
    world = World(**changed)
    world.failed(*IN_IT)
    world.is_spent()
    assert world.said("An outage") == []


def test_a_message_without_a_fault_of_its_own_that_is_parked_is_told() -> None:
    world = World()
    world.is_spent()
    assert world.said("An outage") == [f"An outage parked letter {world.letter.message_id}."]


def test_the_only_message_may_be_given_up_and_not_before_its_time() -> None:
    world = World()
    world.is_spent(PATIENCE, "3 attempts in 60 s failed, and the run has no other message to test source with.")
    assert world.said("An outage") == []
    world.is_spent(PATIENCE - 1, "3 attempts in 60 s failed, and the run has no other message to test source with.")
    assert world.said("An outage") == [f"An outage parked letter {world.letter.message_id}."]


def test_two_edges_may_use_up_a_limit_of_two_attempts_and_faults_more() -> None:
    world = World()
    world.is_spent()
    world.cast.stage.struck["crash"] += 1
    assert world.said("An outage") == []
    few = replace(world.plot, dlq={**world.plot.dlq, "max_attempts": 2})
    world.cast = Cast(Stage(), world.cast.near, world.cast.rates, few, world.history.dlq.pk, "", "")
    assert world.said("An outage") == []


# -- an automatic run pauses only for its reasons


@pytest.mark.parametrize(
    ("reason", "by", "is_told"),
    [
        ("Paused automatically: 3 waves of one message failed in a row.", THE_SERVICE, True),
        ("a moment", THE_SERVICE, True),
        ("no message to source succeeded", THE_SERVICE, True),
        ("a moment", "a person", False),
        (GAVE_UP, THE_SERVICE, False),
        ("The DLQ refills with redriven messages: the bodies of 48 of its newest 50 messages", THE_SERVICE, False),
    ],
)
def test_a_run_that_pauses_itself_for_another_reason_than_its_two_is_told(reason: str, by: str, is_told: bool) -> None:
    world = World()
    world.paused(500.0, reason, by=by)
    assert world.said("run") == ([f"The automatic run paused itself: {reason}"] if is_told else [])


@pytest.mark.parametrize(
    ("sent", "known", "fields", "is_told"),
    [
        (460.0, 465.0, {}, True),
        (439.0, 445.0, {}, False),
        (460.0, 475.0, {}, False),
        (460.0, 465.0, {"outcome": "returned", "returned_at": at(470.0)}, False),
        (460.0, 465.0, {"outcome": "refused", "counts_as_failure": True}, False),
    ],
    ids=["went well", "before its patience", "known after the sweep had looked", "came back", "failed"],
)
def test_a_run_that_gives_up_while_its_target_takes_messages_is_told(
    sent: float, known: float, fields: dict[str, object], is_told: bool
) -> None:
    world = World()
    world.went_well(sent, known, **fields)
    world.paused(500.0, GAVE_UP)
    told = [f"The run gave up 0:01:00 after its target took messages: {GAVE_UP}"]
    assert world.said("gave up") == (told if is_told else [])


# -- no message is taken more often than its attempts allow


def _too_often() -> Iterator[Any]:
    yield pytest.param(MOST, 0, 0, True, id="as often as it may")
    yield pytest.param(MOST + 1, 0, 0, False, id="once more")
    yield pytest.param(MOST + 1, 1, 0, True, id="once more, one spared")
    yield pytest.param(MOST + 2, 1, 0, False, id="twice more, one spared")
    yield pytest.param(2 * MOST, 0, 1, True, id="released")
    yield pytest.param(2 * MOST + 1, 0, 1, False, id="released, and once more")


@pytest.mark.parametrize(("taken", "spared", "released", "may_be"), list(_too_often()))
def test_a_message_that_is_taken_more_often_than_it_may_is_told(
    *, taken: int, spared: int, released: int, may_be: bool
) -> None:
    world = World()
    world.failed(*[(1.0, 2.0)] * spared, spared=True)
    world.cast.released[world.letter.message_id] += released
    world.taken(taken)
    assert bool(world.said("was taken")) is not may_be


def test_attempts_of_which_nobody_heard_are_told_where_nothing_explains_them() -> None:
    world = World()
    world.history.tried("x", outcome="unknown")
    assert world.said("unknown") == ["1 attempts are unknown, 0 may be."]
    world.cast.stage.struck["crash"] += 1
    assert world.said("unknown") == []


# -- repeats of a message whose attempt nobody heard of


@pytest.mark.parametrize(
    ("first", "is_told"),
    [({"outcome": "unknown"}, False), ({"outcome": "unknown", "returned_at": at(3.0)}, True), ({}, True)],
    ids=["its end is unknown", "it came back", "it was accepted"],
)
def test_what_fails_after_an_attempt_of_unknown_end_may_be_tried_again(*, first: dict[str, Any], is_told: bool) -> None:
    world = World()
    world.history.tried("v", world.letter, opened_at=at(0.5), closed_at=at(1.0), **first)
    world.failed((2.0, 3.0), (4.0, 5.0), (6.0, 7.0), spared=True)
    world.taken(4)
    world.cast.stage.struck["crash"] += 1
    lost = replace(world.plot, conf=replace(world.plot.conf, intent_size=1))
    world.cast = Cast(world.cast.stage, world.cast.near, world.cast.rates, lost, world.history.dlq.pk, "", "")
    assert world.said("duplicates, ") == (["3 duplicates, 1 may be."] if is_told else [])
