"""Lasting conditions are announced once, concluded when they are over, and cost the same for many messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reprocessing.conf import Conf
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.models import (
    Attempt,
    Breaker,
    DeadLetterQueue,
    DlqSample,
    HealthCheck,
    Lane,
    Letter,
    Run,
    Target,
    TargetCheck,
)
from reprocessing.pipeline.notifications import conditions
from reprocessing.store.maintenance import counters
from reprocessing.store.notifications.outbox import announce, conclude
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import run_transitions
from reprocessing.store.safety import stops
from tests.race.abreast import together
from tests.reprocessing.incidents import is_open, statements, told
from tests.reprocessing.pipeline.bench import BRISK, Clock
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

CONF: Conf = replace(BRISK, alert_parked_count=100, alert_stalled_for=timedelta(minutes=30))
DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0
WHO: dict[str, Any] = {"by": "ann", "reason": "it is broken"}


def look() -> None:
    conditions.check_conditions(CONF)


def ago(**time: float) -> datetime:
    return lanes.database_now() - timedelta(**time)


def park(stock: Stock, many: int, **fields: object) -> None:
    stock.more_letters(many)
    ids = list(Letter.objects.filter(state="waiting").order_by("-pk").values_list("pk", flat=True)[:many])
    values = {"state": "parked", "reason": "stale", "finished_at": lanes.database_now(), **fields}
    Letter.objects.filter(pk__in=ids).update(**values)


def leave(stock: Stock, many: int) -> None:
    """So many stay parked."""
    parked = Letter.objects.filter(dlq=stock.dlq, state="parked").order_by("pk").values_list("pk", flat=True)
    Letter.objects.filter(pk__in=list(parked)[many:]).update(state="discarded", reason="")


@pytest.fixture
def stock() -> Stock:
    return Stock()


@pytest.mark.parametrize("letters", [101, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_many_parked_messages_are_one_incident_and_it_is_over_when_few_are_left(stock: Stock, letters: int) -> None:
    park(stock, letters)
    look()
    together([look] * 3)
    subject = f"dlq:{stock.dlq.pk}"
    assert is_open("parked_many") == {subject: {"dlq": stock.dlq.name, "messages": letters, "threshold": 100}}
    assert told("parked_many") == [(subject, 1, True)]
    leave(stock, 75)
    look()
    assert list(is_open("parked_many")) == [subject]
    leave(stock, 74)
    look()
    assert told("parked_many")[0][2] is False


def test_no_more_than_the_threshold_are_none_and_the_next_dlq_is_an_incident_of_its_own() -> None:
    few, many = Stock(), Stock()
    park(few, 100)
    park(many, 101)
    look()
    assert list(is_open("parked_many")) == [f"dlq:{many.dlq.pk}"]


def test_the_oldest_parked_message_is_told_of_until_it_is_seen_to(stock: Stock) -> None:
    park(stock, 1, finished_at=ago(hours=23))
    look()
    assert is_open("parked_old") == {}
    park(stock, 2, finished_at=ago(hours=49, minutes=3))
    look()
    look()
    facts = {"dlq": stock.dlq.name, "messages": 3, "seconds": 49 * 3_600, "threshold": 86_400}
    assert is_open("parked_old") == {f"dlq:{stock.dlq.pk}": facts}
    leave(stock, 0)
    look()
    assert is_open("parked_old") == {}


def test_a_look_at_many_parked_messages_asks_as_many_statements_as_one_at_none(stock: Stock) -> None:
    look()
    with statements() as few:
        look()
    park(stock, 90)
    counters.fold_deltas()
    with statements() as many:
        look()
    assert len(many) == len(few) <= 12


def visible(stock: Stock, n: int, **fields: object) -> None:
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(depth_visible=n, depth_at=lanes.database_now(), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mode": "observe"},
        {"mode": "automatic", "last_error": "AccessDenied"},
        {"mode": "automatic", "stopped_at": NOW, "stopped_by": "ann", "stop_reason": "a test"},
    ],
    ids=["manual", "observe", "captures fail", "stopped"],
)
def test_messages_that_nobody_captures_are_told_of_a_day_before_sqs_deletes_them(
    clock: Clock, fields: dict[str, object]
) -> None:
    stock = Stock()  # whose DLQ keeps a message for four days
    visible(stock, 7, **fields)
    look()
    clock.advance(3 * DAY - 60)
    look()
    assert is_open("messages_expiring") == {}
    clock.advance(60)
    look()
    together([look] * 2)
    facts = {"dlq": stock.dlq.name, "messages": 7, "seconds": 86_400 - 600}
    assert is_open("messages_expiring") == {f"dlq:{stock.dlq.pk}": facts}
    visible(stock, 0, last_error="")
    look()
    assert told("messages_expiring") == [(f"dlq:{stock.dlq.pk}", 1, False)]


def test_a_dlq_that_was_empty_in_between_begins_anew(stock: Stock, clock: Clock) -> None:
    for n in (7, 0, 7):
        visible(stock, n)
        look()
        clock.advance(2 * DAY)
    look()
    assert is_open("messages_expiring") == {}


def test_messages_still_expire_while_a_capture_has_not_said_yet_what_it_captured(stock: Stock, clock: Clock) -> None:
    visible(stock, 7)
    look()
    clock.advance(3.5 * DAY)
    look()
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(leased_until=lanes.database_now() + timedelta(minutes=1))
    look()
    assert told("messages_expiring") == [(f"dlq:{stock.dlq.pk}", 1, True)]
    clock.advance(2 * MINUTE)  # it died
    look()
    assert told("messages_expiring") == [(f"dlq:{stock.dlq.pk}", 1, True)]


def noted(stock: Stock, *backlogs: int) -> None:
    """Notes up to now, five minutes apart."""
    DlqSample.objects.all().delete()
    last = len(backlogs) - 1
    DlqSample.objects.bulk_create(
        DlqSample(
            dlq=stock.dlq, taken_at=ago(minutes=5 * (last - n)), uncaptured=0, captured=backlog, unfinished=backlog
        )
        for n, backlog in enumerate(backlogs)
    )


def test_a_dlq_that_fills_faster_than_it_drains_is_told_of_until_it_does_not(stock: Stock) -> None:
    look()  # the first note is taken: the next one is due in five minutes
    noted(stock, *range(100, 230, 10))
    look()
    together([look] * 2)
    (facts,) = is_open("dlq_growing").values()
    assert facts == {"dlq": stock.dlq.name, "arrived": 120, "drained": 0, "seconds": 3_600, "messages": 220}
    assert [times for _, times, _ in told("dlq_growing")] == [1]
    noted(stock, *[220] * 12, 200)
    look()
    assert is_open("dlq_growing") == {}


def test_growth_is_over_when_notes_say_so_and_not_when_nobody_took_any(stock: Stock, clock: Clock) -> None:
    look()
    noted(stock, *range(100, 230, 10))
    look()
    clock.advance(2 * HOUR)  # workers were away
    look()
    assert [is_open for *_, is_open in told("dlq_growing")] == [True]
    noted(stock, *[220] * 13)
    look()
    assert [is_open for *_, is_open in told("dlq_growing")] == [False]


def test_what_a_dlq_holds_is_noted_every_five_minutes_and_forgotten(stock: Stock, clock: Clock) -> None:
    stock.more_letters(4)
    for _ in range(3):
        look()
        look()
        clock.advance(5 * MINUTE)
    assert list(DlqSample.objects.values_list("uncaptured", "captured", "unfinished")) == [(0, 5, 5)] * 3
    clock.advance(3 * HOUR)
    look()
    assert DlqSample.objects.count() == 1


@pytest.fixture
def stands(clock: Clock) -> Stock:
    """A run whose only message could have gone hours ago; beat and workers have been back for long."""
    stock = Stock()
    past = ago(hours=2)
    Letter.objects.filter(pk=stock.letter.pk).update(captured_at=past)
    Lane.objects.filter(pk=stock.lane.pk).update(phase="ready", due_at=past)
    for _ in range(6):
        look()
        clock.advance(MINUTE)
    return stock


def why(stock: Stock) -> str | None:
    look()
    facts = is_open("run_stalled").get(f"run:{stock.run.pk}")
    return None if facts is None else facts["why"].replace(f"{stock.dlq.name}-source", "orders")


def test_a_run_whose_messages_no_worker_takes_is_told_of_once_and_over_when_one_goes(stands: Stock) -> None:
    assert why(stands) == "No worker sends the messages that are due for orders."
    together([look] * 3)
    assert told("run_stalled") == [(f"run:{stands.run.pk}", 1, True)]
    breaker = Breaker.objects.get(target=stands.target)
    Attempt.objects.create(letter=stands.letter, lane=stands.lane, target=stands.target, no=1, epoch=0, fence=1,
                           opened_at=lanes.database_now(), holds_lane=False, breaker=breaker)  # fmt: skip
    assert why(stands) is None


def test_a_run_whose_target_is_not_known_to_be_healthy_is_told_of(stands: Stock) -> None:
    HealthCheck.objects.create(target=stands.target, kind="depth", ceiling=1, every=30, max_age=60)
    assert why(stands) == "A health check of orders failed, or its result is not known."


def test_a_run_that_waits_for_redis_is_told_of(stands: Stock) -> None:
    Lane.objects.update(due_at=lanes.database_now(), why="Redis does not tell the target's rate")
    assert why(stands) == "Redis does not answer, so the rate limit of orders cannot be checked."


def test_a_run_whose_source_queue_nobody_consumes_is_told_of_that_first(stands: Stock) -> None:
    other = stands.another_letter(state="awaiting")
    past = ago(hours=2)
    lane = Lane.objects.create(dlq=stands.dlq, source=stands.source, key_hash=b"l" * 32, run=stands.run)
    Letter.objects.filter(pk=other.pk).update(lane=lane)
    Target.objects.filter(pk=stands.target.pk).update(proof="absence", watched_by=stands.dlq, window=60)
    Attempt.objects.create(letter=other, lane=lane, target=stands.target, no=1, epoch=0, fence=1, opened_at=past,
                           taken_at=past, deadline=past, holds_lane=True)  # fmt: skip
    assert why(stands) == "No outcomes: orders was never found empty, so its consumer may be stopped."


def _sent_and_seen_empty(stands: Stock, *, at: datetime) -> None:
    """A message whose target was seen empty after `at`; no capture has emptied the DLQ since."""
    sent = stands.another_letter(state="awaiting")
    lane = Lane.objects.create(dlq=stands.dlq, source=stands.source, key_hash=b"l" * 32, run=stands.run)
    Letter.objects.filter(pk=sent.pk).update(lane=lane)
    Letter.objects.filter(pk=stands.letter.pk).update(captured_at=lanes.database_now())
    Target.objects.filter(pk=stands.target.pk).update(proof="absence", watched_by=stands.dlq, window=60)
    Attempt.objects.create(letter=sent, lane=lane, target=stands.target, no=1, epoch=0, fence=1, opened_at=at,
                           taken_at=at, deadline=at, holds_lane=True)  # fmt: skip
    for minutes in (5, 15):
        TargetCheck.objects.create(target=stands.target, seen_at=at + timedelta(minutes=minutes), empty=True)


def test_a_run_whose_outcomes_no_capture_proves_is_told_of(stands: Stock) -> None:
    _sent_and_seen_empty(stands, at=ago(hours=2))
    said = why(stands)
    assert said is not None
    assert said.startswith("No outcomes of messages to orders: no capture of the DLQ could show that none came back.")
    drained = DeadLetterQueue.objects.filter(pk=stands.dlq.pk)
    drained.update(drained_through=lanes.database_now())
    assert why(stands) is None
    drained.update(drained_through=None, next_poll_at=lanes.database_now() + timedelta(hours=9))
    assert why(stands) is None


@pytest.mark.parametrize("by", ["a stop", "a pause", "a halt", "the breaker", "a rest", "a late capture"])
def test_a_run_that_somebody_stopped_or_that_rests_does_not_stand_still(stands: Stock, by: str) -> None:
    match by:
        case "a stop":
            stops.stop(stands.dlq.pk, **WHO)
        case "a halt":
            stops.stop(None, **WHO)
        case "a pause":
            run_transitions.pause(stands.run.pk, **WHO)
        case "the breaker":
            Breaker.objects.update(state="open", retry_at=lanes.database_now() + timedelta(minutes=5))
        case "a rest":
            Lane.objects.update(due_at=lanes.database_now() + timedelta(hours=1))
        case _:
            Letter.objects.update(captured_at=ago(minutes=29))
    look()
    assert is_open("run_stalled") == {}


@pytest.mark.soak
@pytest.mark.parametrize("state", ["paused", "aborted"])
def test_a_run_whose_messages_wait_behind_a_run_that_sends_nothing_is_told_of(
    stands: Stock, clock: Clock, state: str
) -> None:
    later = Run.objects.create(name="later", dlq=stands.dlq, state="running", asked_by="ann", started_at=ago(hours=2))
    stands.another_letter(sequence="2", run=later)
    if state == "paused":
        run_transitions.pause(stands.run.pk, **WHO)
    else:
        run_transitions.abort(stands.run, **WHO, stop_dlq=False)
    look()
    assert is_open("run_stalled") == {}
    for _ in range(31):
        clock.advance(MINUTE)
        look()
    facts = is_open("run_stalled")[f"run:{later.pk}"]
    said = f"Earlier messages of its keys are in the run {stands.run.name}, which has ended or is paused."
    assert (facts["why"], facts["messages"]) == (said, 1)
    Run.objects.filter(pk=stands.run.pk).update(state="running", finished_at=None)
    look()
    assert f"run:{later.pk}" not in is_open("run_stalled")


def test_a_run_does_not_stand_still_because_all_workers_were_away(stands: Stock, clock: Clock) -> None:
    conclude([(EventKind.RUN_STALLED, f"run:{stands.run.pk}")])
    clock.advance(HOUR)
    assert why(stands) is None
    clock.advance(MINUTE)
    assert why(stands) is None


def test_a_run_that_stood_still_before_all_workers_were_away_is_not_told_as_over(stands: Stock, clock: Clock) -> None:
    assert why(stands) is not None
    clock.advance(HOUR)
    assert why(stands) is not None
    Letter.objects.update(captured_at=lanes.database_now())  # it has moved
    for _ in range(6):
        clock.advance(MINUTE)
        look()
    assert is_open("run_stalled") == {}


def test_incidents_of_what_is_gone_or_was_moved_by_hand_are_concluded(stock: Stock) -> None:
    run = {"run": "r", "dlq": "d", "why": "w"}
    announce([
        Event(EventKind.BREAKER_OPEN, "breaker:999999", {"target": "t", "breaker_id": 999_999, "why": "w"}),
        Event(EventKind.RUN_STOPPED, f"run:{stock.run.pk}", {**run, "run_id": stock.run.pk}),
        Event(EventKind.RESTORE_DETECTED, "restore", {}),
    ])  # fmt: skip
    look()
    assert [told(kind)[0][2] for kind in ("breaker_open", "run_stopped", "restore_detected")] == [False] * 3
    Run.objects.filter(pk=stock.run.pk).update(state="paused", stopped_by="the service", why="w")
    announce([Event(EventKind.RUN_STOPPED, f"run:{stock.run.pk}", {**run, "run_id": stock.run.pk})])
    look()
    assert list(is_open("run_stopped")) == [f"run:{stock.run.pk}"]
