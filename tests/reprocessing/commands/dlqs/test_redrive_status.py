"""The whole system on one screen: every letter counted once, and for everything that waits, why."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.models import (
    Attempt,
    Breaker,
    DeadLetterQueue,
    DlqCopy,
    HealthCheck,
    Letter,
    RateClass,
    Rule,
    Source,
    Target,
    Wave,
)
from reprocessing.models.payload import DlqCopyState
from reprocessing.models.run import Run, RunKind, RunState
from reprocessing.store.routing import rule_changes
from reprocessing.store.safety import stops
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.stock import add_lane, add_letter, add_sent, add_source, ago

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(orders: DeadLetterQueue) -> Source:
    return add_source(orders, window=90)


def add_copy(letter: Letter, state: DlqCopyState = DlqCopyState.HELD) -> None:
    gone_at = ago(seconds=1) if state == DlqCopyState.GONE else None
    DlqCopy.objects.create(
        dlq=letter.dlq, message_id=letter.message_id, letter=letter, state=state, handle="handle",
        visible_until=ago(seconds=-60), gone_at=gone_at, expires_at=letter.expires_at,
    )  # fmt: skip


def waits_for(ask_json: AskJson) -> Any:  # noqa: ANN401  a sentence, or nothing
    return ask_json("redrive_status", "orders")["dlqs"][0]["targets"][0]["waits_for"]


def test_every_letter_is_counted_once_and_presumed_ones_apart(
    ask_json: AskJson, source: Source, add_row: AddRow
) -> None:
    for number, state in enumerate(LetterState):
        for _ in range(number + 1):
            add_letter(source, state)
    add_letter(source, LetterState.DELIVERED, presumed=True)
    add_letter(source, LetterState.PARKED, reason="stale")
    add_letter(add_source(add_row("mails"), "mail"), LetterState.CAPTURED)
    found = ask_json("redrive_status", "orders")["dlqs"][0]
    assert found["messages"] == {
        "captured": 1, "waiting": 2, "sending": 3, "awaiting": 4, "presumed": 1, "parked": 6 + 1, "duplicate": 7,
        "discarded": 8, "delivered": 5 + 7,  # and those that the duplicates are duplicates of
    }  # fmt: skip
    assert found["parked"] == {"attempts_spent": 6, "stale": 1}
    assert found["unfinished"] == 10


def test_the_oldest_unfinished_letter_and_the_first_to_expire_are_told(ask_json: AskJson, source: Source) -> None:
    add_copy(add_letter(source, LetterState.DELIVERED, first_sent_at=ago(days=9), expires_at=ago(days=5)))
    add_copy(add_letter(source, LetterState.WAITING, first_sent_at=ago(hours=3), expires_at=ago(hours=-2)))
    add_copy(add_letter(source, LetterState.CAPTURED, first_sent_at=ago(hours=1), expires_at=ago(hours=-7)))
    found = ask_json("redrive_status")["dlqs"][0]
    assert round(found["oldest_age_seconds"] / 3600) == 3
    assert round(found["expires_in_seconds"] / 3600) == 2


@pytest.mark.parametrize("state", [None, DlqCopyState.DELETE, DlqCopyState.GONE])
def test_nothing_expires_where_the_dlq_has_no_copy_left(
    ask: Ask, ask_json: AskJson, source: Source, state: DlqCopyState | None
) -> None:
    letter = add_letter(source, LetterState.WAITING, first_sent_at=ago(hours=3), expires_at=ago(hours=-2))
    if state:
        add_copy(letter, state)
    found = ask_json("redrive_status")["dlqs"][0]
    assert (found["expires"], found["expires_in_seconds"]) == (None, None)
    assert "the dlq drops" not in ask("redrive_status")


def test_waiting_lanes_say_why(ask_json: AskJson, source: Source) -> None:
    add_lane(source, LanePhase.READY, due_at=ago(seconds=1))
    add_lane(source, LanePhase.READY, due_at=ago(hours=-1), why="its target's rate")
    add_lane(source, LanePhase.READY, due_at=ago(hours=-1))
    add_lane(source, LanePhase.AWAITING, run=Run.objects.create(name="monday", dlq=source.dlq, state="running"))
    add_lane(source, LanePhase.HELD)
    add_lane(source, LanePhase.LEASED)
    add_lane(source, LanePhase.IDLE)
    found = ask_json("redrive_status")["dlqs"][0]
    assert found["lanes"] == {"ready": 3, "awaiting": 1, "held": 1, "leased": 1}
    assert sorted(one["why"] for one in found["waiting"]) == [
        "due: waiting for a worker",
        "held by a parked message until a person decides",
        "its target's rate",
        "waiting for the first message's next attempt",
        "waiting for the outcome of the first message",
    ]


def test_each_target_says_how_its_breakers_stand_and_what_they_let_go(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue
) -> None:
    target = add_source(orders, rate=10).target
    vip = RateClass.objects.create(name="vip", rate=0.5)
    classed = Breaker.objects.create(target=target, rate_class=vip, ramp=0.2, ramp_reason="none of 9 messages failed")
    Breaker.objects.filter(target=target, rate_class=None).update(ramp=0.2, why="3 canaries succeeded")
    found = ask_json("redrive_status", "orders")["dlqs"][0]["targets"][0]["breakers"]
    assert [(one["rate_class"], one["allowed_rate"]) for one in found] == [(None, 2), ("vip", 0.5)]
    said = ask("redrive_status")
    assert ": 3 canaries succeeded\n" in said
    assert "2 of 10 messages/s allowed now (start of the ramp-up)" in said
    opened = {"state": "open", "retry_at": ago(seconds=-60), "why": "5 messages in a row failed"}
    Breaker.objects.filter(pk=classed.pk).update(**opened)
    said = ask("redrive_status")
    assert "breaker (vip)   OPEN since" in said
    assert ": 5 messages in a row failed; next canary at" in said
    assert "only canaries are sent" in said
    Breaker.objects.filter(pk=classed.pk).update(state="half_open", retry_at=None, canary_until=ago(seconds=1))
    assert "; next canary now" in ask("redrive_status")


def test_what_cannot_be_presumed_says_so(ask_json: AskJson, source: Source) -> None:
    add_sent(source, taken_at=ago(seconds=300), deadline=ago(seconds=200))
    DeadLetterQueue.objects.update(mode="observe")
    assert "orders is in mode observe" in waits_for(ask_json)
    source.target.proof, source.target.watched_by = "accepted", None
    source.target.save()
    assert waits_for(ask_json).startswith("the next outcome check: the target has accepted the messages,")


def test_stops_troubles_and_runs_are_told_to_people(ask: Ask, orders: DeadLetterQueue, source: Source) -> None:
    DeadLetterQueue.objects.update(
        last_error="no right", depth_visible=1_969, depth_in_flight=2, depth_at=ago(seconds=1)
    )
    stops.stop(orders.pk, by="ann", reason="rain")
    stops.stop(None, by="bob", reason="flood")
    run = Run.objects.create(name="monday", dlq=orders, kind=RunKind.DRAIN, state=RunState.RUNNING, asked_by="cy")
    add_letter(source, LetterState.WAITING, run=run)
    add_letter(source, LetterState.PARKED)
    said = ask("redrive_status")
    parts = (
        'by bob ("flood")', 'by ann ("rain")', "no right", "about 1,969 visible, 2 in flight", "1 queued, 1 parked",
        "1: All attempts that the DLQ allows have failed", "monday (drain for cy) is running: 1 message unfinished",
        "target    shop: outcome absence",
    )  # fmt: skip
    assert [part for part in parts if part not in said] == []


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.RUNNING, "is done: beat ends it"),
        (RunState.PAUSED, "is paused: 0 messages unfinished"),
        (RunState.PLANNED, "is planned: 0 messages unfinished"),
    ],
)
def test_a_running_drain_of_which_nothing_is_left_is_said_to_be_at_its_end(
    ask: Ask, source: Source, state: RunState, said: str
) -> None:
    run = Run.objects.create(name="monday", dlq=source.dlq, state=state, stopped_by="ann", why="rain")
    add_letter(source, LetterState.DELIVERED, run=run)
    (told,) = [line for line in ask("redrive_status").splitlines() if line.startswith("  run ")]
    assert told == f"  run       monday (drain) {said}"


def test_letters_that_go_elsewhere_are_said_to(ask: Ask, source: Source) -> None:
    Target.objects.filter(pk=source.target_id).update(arn="arn:aws:lambda:us-east-1:000000000000:function:ship:prod")
    assert "target    shop \N{RIGHTWARDS ARROW} ship:prod: outcome absence" in ask("redrive_status")


@pytest.mark.parametrize(
    ("size", "said"), [(10, "; in a wave of 10, 1 message sent"), (None, "; in the last wave, 1 message sent")]
)
def test_a_run_says_in_which_wave_it_is_and_why_it_does_not_go_on(
    ask: Ask, ask_json: AskJson, source: Source, size: int | None, said: str
) -> None:
    why = "Paused automatically: rain."
    run = Run.objects.create(name="monday", dlq=source.dlq, state="paused", stopped_by="the service", why=why)
    Wave.objects.create(run=run, no=1, size=1, settled_at=ago(seconds=9), sent=1, failed=0)
    wave = Wave.objects.create(run=run, no=2, size=size)
    lane = add_lane(source, LanePhase.LEASED)
    letter = add_letter(source, LetterState.SENDING, lane=lane, attempts=1)
    Attempt.objects.create(
        letter=letter, lane=lane, target=source.target, no=1, epoch=0, fence=1, opened_at=ago(),
        holds_lane=True, run=run, wave=wave,
    )  # fmt: skip
    (told,) = ask_json("redrive_status", "orders")["dlqs"][0]["runs"]
    assert (told["wave"], told["why"]) == ({"no": 2, "size": size, "sent": 1}, why)
    lines = ask("redrive_status")
    assert "cost so far 1 AWS request, less than $0.01, for sends and deletes" in lines
    assert f"monday (drain) is paused: 0 messages unfinished{said}\n            {why}" in lines


def test_before_any_dlq_it_says_how_to_begin(ask: Ask) -> None:
    assert "No DLQ has been added yet. Add one: manage.py add_dlq NAME --url URL --confirm" in ask("redrive_status")


def test_the_statements_do_not_grow_with_the_letters(ask: Ask, source: Source, add_row: AddRow) -> None:
    with CaptureQueriesContext(connection) as few:
        ask("redrive_status")
    for _ in range(20):
        add_letter(source, LetterState.WAITING)
    add_source(add_row("mails"), "mail")
    with CaptureQueriesContext(connection) as many:
        ask("redrive_status")
    assert len(many) == len(few)


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_watching_goes_on_until_nobody_watches(orders: DeadLetterQueue) -> None:
    words = [sys.executable, "manage.py", "redrive_status", "--watch", "--every", "0.1", "--json"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    server = variables["DATABASE_URL"].rpartition("/")[0]
    variables["DATABASE_URL"] = f"{server}/{connection.settings_dict['NAME']}"
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.stdout.close()
        assert (watching.wait(20), watching.stderr.read()) == (0, "")
    assert [[dlq["name"] for dlq in look["dlqs"]] for look in looks] == [["orders"]] * 2
    assert looks[0]["now"] < looks[1]["now"]


def test_the_rules_that_hold_are_told_with_what_they_stop_and_err_on(
    add_row: AddRow, ask: Ask, ask_json: AskJson
) -> None:
    source = add_source(add_row("orders"))
    said = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": True}
    rule_changes.save_rule("bad", said, by="ann", reason="a test")
    rule_changes.save_rule("off", said | {"enabled": False}, by="ann", reason="a test")
    bad = Rule.objects.get(name="bad")
    why = "rule bad holds it"
    lane = add_lane(source, LanePhase.HELD, why=why)
    add_letter(source, LetterState.WAITING, lane=lane, rule=bad, route="hold", rulebook_version=2)
    add_letter(source, LetterState.WAITING, rulebook_version=2)
    Rule.objects.filter(pk=bad.pk).update(match_count=1, error_count=2, last_error="body:kind: it was odd")
    (told,) = ask_json("redrive_status", "orders")["rules"]
    counts = ("match_count", "stopped", "error_count", "asked")
    assert (told["name"], [told[name] for name in counts], told["errs_too_often"]) == ("bad", [1, 1, 2, 2], True)
    lines = ask("redrive_status")
    assert "rule bad (hold): 1 message decided; 1 message held by it" in lines
    assert "  ERROR: it could not evaluate 2 of 2 messages, which it holds: body:kind: it was odd" in lines
    assert f"waiting   1 message: {why}" in lines


def test_what_waits_without_ordering_keys_is_counted_as_messages(add_row: AddRow, ask: Ask) -> None:
    why = "rule bad holds it"
    for name, words in (("none", "2 messages"), ("message-id", "2 key queues")):
        source = add_source(add_row(f"dlq-{name}", ordering_key=name), name)
        for _ in range(2):
            lane = add_lane(source, LanePhase.HELD, why=why)
            add_letter(source, LetterState.WAITING, lane=lane)
        assert f"  waiting   {words}: {why}\n" in ask("redrive_status", f"dlq-{name}")


def test_the_health_of_a_target_is_told_with_its_age(ask: Ask, ask_json: AskJson, source: Source) -> None:
    check = HealthCheck.objects.create(target=source.target, kind="alarm", subject="shop-errors")
    assert "health    alarm shop-errors is unknown (never run); nothing is sent until it is healthy" in ask(
        "redrive_status", "orders"
    )
    HealthCheck.objects.filter(pk=check.pk).update(verdict="healthy", detail="OK", checked_at=ago(seconds=7))
    said = re.search(r"health    alarm shop-errors is healthy \((\d+) s ago\): OK\n", ask("redrive_status", "orders"))
    assert said
    assert 7 <= int(said[1]) < 60
    (told,) = ask_json("redrive_status", "orders")["dlqs"][0]["targets"][0]["checks"]
    assert (told["check"], told["verdict"], told["lets_go"]) == ("alarm shop-errors", "healthy", True)


def test_a_reason_of_lanes_is_told_once_with_all_of_its_lanes(ask_json: AskJson, add_row: AddRow) -> None:
    source = add_source(add_row("orders"))
    run = Run.objects.create(name="monday", dlq=source.dlq, state="paused", stopped_by="ann", why="a test")
    for due in (ago(seconds=60), ago(seconds=-60)):
        add_lane(source, run=run, due_at=due)
    told = ask_json("redrive_status", "orders")["dlqs"][0]["waiting"]
    assert [(one["lanes"], one["why"]) for one in told] == [(2, "the run monday is paused")]
