"""Turns with killed workers, lost leases, expired tokens and blocked lanes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from time import monotonic
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import DatabaseError

from reprocessing.domain.runs.rate_chart import MinuteCount
from reprocessing.gateways.redis.send_rate import Granted, Rates
from reprocessing.models import Attempt, Breaker, Claim, DeadLetterQueue, Lane, Letter, RateClass, Run, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import lease_keeper, replay_slice, send, settle
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import LeasedLane
from reprocessing.store.replay.intent import intend
from reprocessing.store.runs import run_minutes
from reprocessing.store.safety import send_limits, stops
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Clock, Workbench, enqueued
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 9


def test_a_repeated_letter_has_the_same_identity(clock: Clock) -> None:
    bench = enqueued("letter")
    bench.lose_worker(clock)
    bench.replay()
    marks = [message["MessageAttributes"] for message in bench.delivered()]
    public_id = bench.letter().public_id
    assert sorted(mark["RedriveId"]["StringValue"] for mark in marks) == [f"{public_id}:1", f"{public_id}:2"]
    assert {mark["IdempotencyKey"]["StringValue"] for mark in marks} == {bench.letter().message_id}


@pytest.mark.soak
def test_a_fifo_target_drops_the_repeat_of_a_killed_worker(clock: Clock) -> None:
    bench = enqueued(
        "letter", fifo=True, fields={"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}
    )
    bench.lose_worker(clock)
    bench.replay()
    assert bench.history() == [(1, "unknown", 0), (2, "accepted", 0)]
    assert bench.delivered_bodies() == ["letter"]


@pytest.mark.soak
def test_a_letter_that_kills_its_workers_is_parked_after_its_attempts(clock: Clock) -> None:
    bench = enqueued("letter", fields={"max_attempts": 3})
    for _ in range(3):
        bench.lose_worker(clock)
    bench.replay()
    assert len(bench.delivered()) == 3
    assert (bench.letter().state, bench.letter().reason, bench.letter().attempts) == ("parked", "attempts_spent", 3)
    assert bench.letter().detail == "the outcome of the last attempt is not known"
    assert bench.history() == [(1, "unknown", 0), (2, "unknown", 0), (3, "unknown", 0)]
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert bench.left() == 0


def test_the_statements_of_a_slice_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[str] = []

    def spied(*given: Any, **options: Any) -> Any:  # noqa: ANN401  as the intent
        modes.append(rows.value(str, "SELECT current_setting('plan_cache_mode') AS mode", {}))
        return intend(*given, **options)

    monkeypatch.setattr(replay_slice, "intend", spied)
    enqueued("letter").replay()
    assert modes == ["force_generic_plan"]


@pytest.mark.parametrize("limit", [1, 3])
def test_a_worker_that_cannot_record_leaves_its_letter_to_the_lease(clock: Clock, limit: int) -> None:
    bench = enqueued("letter", fields={"max_attempts": limit})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "attempts", _fails)
        with pytest.raises(DatabaseError):
            bench.replay()
    assert bench.lane().phase == "leased"
    clock.advance(LEASE)
    bench.replay(seconds=2)
    assert bench.history()[0] == (1, "unknown", 0)
    assert bench.letter().state == ("parked" if limit == 1 else "delivered")


_fails = Mock(side_effect=DatabaseError("the server closed the connection"))


def test_a_killed_worker_repeats_one_intent_group_at_most(clock: Clock) -> None:
    bench = Workbench()
    bench.conf = replace(bench.conf, intent_size=4)
    bench.enqueue(*map(str, range(10)))
    bench.lose_worker(clock)
    bench.replay()
    assert len(bench.delivered()) == 10 + 4
    assert set(bench.states().values()) == {"delivered"}


@pytest.mark.soak
def test_a_worker_that_lost_its_lane_writes_only_its_evidence(clock: Clock) -> None:
    bench = enqueued("letter")

    def another_delivers_it() -> None:
        clock.advance(LEASE)
        assert bench.replay().taken == 1

    with bench.meanwhile(another_delivers_it):
        bench.replay()
    first, second = Attempt.objects.order_by("no")
    assert (first.outcome, second.outcome) == ("unknown", "accepted")
    assert first.sent_message_id not in (None, second.sent_message_id)
    assert (bench.letter().state, bench.letter().attempts) == ("delivered", 2)


def test_a_worker_that_lost_its_lane_moves_no_letter(clock: Clock) -> None:
    bench = enqueued("letter")

    def another_takes_the_lane() -> None:
        clock.advance(LEASE)
        assert len(lanes.lease("another", limit=10, lease=8)) == 1

    with bench.meanwhile(another_takes_the_lane):
        bench.replay()
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.holds_lane) == (None, True)
    assert attempt.sent_message_id is not None
    assert (bench.letter().state, bench.lane().owner, bench.lane().phase) == ("sending", "another", "leased")


def test_an_expired_lease_still_settles_if_nobody_took_the_lane(clock: Clock) -> None:
    bench = enqueued("letter")
    with bench.meanwhile(lambda: clock.advance(LEASE)):
        bench.replay()
    assert bench.history() == [(1, "accepted", 0)]


def test_no_request_begins_after_the_end_of_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(lease_keeper.LeaseKeeper):
        def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  those of an ownership
            super().__init__(*args, **options)
            self.until = monotonic() - 1

    bench = enqueued("letter")
    monkeypatch.setattr(send, "LeaseKeeper", Late)
    once = iter([False, True])
    assert (bench.replay(stop=lambda: next(once)).taken, bench.delivered()) == (0, [])
    assert (bench.letter().attempts, bench.history()) == (0, [(1, "not_sent", 0)])


def test_an_expired_token_sends_nothing_and_counts_nothing() -> None:
    bench = enqueued("letter", target_fields={"rate": 5.0})
    rates = _DeadTokens()
    report = bench.replay(rates=rates, stop=lambda: rates.asked > 0)
    assert (report.taken, bench.delivered()) == (0, [])
    letter = bench.letter()
    assert (letter.state, letter.attempts, letter.not_sent) == ("waiting", 0, 1)
    assert bench.history() == [(1, "not_sent", 0)]
    assert bench.replay(rates=_ThreeTokens()).taken == 1
    assert bench.history() == [(1, "not_sent", 0), (2, "accepted", 0)]
    assert bench.letter().attempts == 1


class _DeadTokens(Rates):
    def __init__(self) -> None:
        self.asked = 0

    def take(self, target_id: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        self.asked += 1
        return Granted(wanted, 0.0, monotonic() - 10)


def test_nothing_is_sent_while_redis_does_not_answer() -> None:
    bench = enqueued("letter", target_fields={"rate": 100.0})
    report = bench.replay(seconds=1.5, rates=Rates.at("redis://127.0.0.1:9/0"))
    assert (report.taken, report.failed, bench.delivered()) == (0, 0, [])
    assert (bench.letter().state, bench.history(), bench.lane().phase) == ("waiting", [], "ready")


def test_no_more_letters_are_sent_than_tokens_were_granted() -> None:
    bench = enqueued(*map(str, range(10)), target_fields={"rate": 5.0})
    rates = _ThreeTokens()
    assert bench.replay(rates=rates, stop=lambda: rates.asked > 0).taken == 3
    assert len(bench.delivered()) == 3


class _ThreeTokens(_DeadTokens):
    def take(self, target_id: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        self.asked += 1
        return Granted(min(3, wanted), 0.0, monotonic() + 60)  # they live as long as the slowest trip


def test_an_unreachable_target_blocks_no_other() -> None:
    dead, alive = Workbench(), Workbench()
    dead.bury("dead")
    alive.bury("alive")
    dead.ready()
    alive.ready()
    Target.objects.filter(pk=dead.target.pk).update(url=f"{dead.source_url}-of-nobody")
    alive.replay()
    assert alive.states() == {"alive": "delivered"}
    assert dead.states() == {"dead": "parked"}  # three attempts, no backoff


def test_a_lane_sends_one_letter_at_a_time() -> None:
    bench = Workbench(fields=KEYED, absence={"window": 60})
    bench.enqueue_lane("1", "2", "3", key="account")
    bench.replay()
    assert bench.states() == {"1": "awaiting", "2": "waiting", "3": "waiting"}
    assert (bench.lane().phase, bench.lane().due_at) == ("awaiting", None)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("advance", "sent"), [("accepted", ["1", "2", "3", "1"]), ("settled", ["1", "1"])], ids=["accepted", "settled"]
)
def test_a_letter_that_fails_again_is_sent_after_those_that_did_not_wait(
    clock: Clock, advance: str, sent: list[str]
) -> None:
    bench = Workbench(fields=KEYED, absence={"window": 60, "advance": advance})
    bench.enqueue_lane("1", "2", "3", key="account")
    bench.replay()
    bench.take_back(next(message for message in bench.delivered() if message["Body"] == "1"))
    clock.advance(3_600)
    bench.replay()
    attempts = Attempt.objects.order_by("id").values_list("letter__payload__body", flat=True)
    assert [bytes(body).decode() for body in attempts] == sent


def test_a_run_that_does_not_wait_for_outcomes_sends_a_key_s_next_letter_at_once() -> None:
    bench = Workbench(fields=KEYED, absence={"window": 60, "advance": "settled"})
    run = bench.enqueue_lane("1", "2", "3", key="account")
    Run.objects.filter(pk=run.pk).update(waits_for_outcomes=False)
    bench.replay()
    assert bench.delivered_bodies() == ["1", "2", "3"]


def test_the_attempts_of_a_turn_are_counted_by_run_and_minute() -> None:
    bench = Workbench()
    run = bench.enqueue("1", "2", "3")
    bench.replay()
    opened = Attempt.objects.order_by("id").values_list("opened_at", flat=True)
    minutes = Counter(run_minutes.minute_of(at) for at in opened)
    assert run_minutes.minutes_of_run(run.pk) == [MinuteCount(at, n) for at, n in sorted(minutes.items())]


def test_a_strict_turn_sends_only_its_lanes() -> None:
    bench = enqueued(*map(str, range(3)))
    first = Lane.objects.order_by("id").values_list("id", flat=True)[0]
    assert bench.replay(only=[first], strictly=True).taken == 1
    assert list(Letter.objects.filter(state="delivered").values_list("lane", flat=True)) == [first]


@pytest.mark.parametrize("obstacle", ["stopped", "observed", "not running", "halted"])
def test_nothing_is_sent_if_it_is_stopped_observed_or_not_running(obstacle: str) -> None:
    bench = Workbench()
    run = bench.enqueue("letter")
    match obstacle:
        case "stopped":
            stops.stop(bench.dlq.pk, by="anna", reason="the consumer is broken")
        case "halted":
            stops.stop(None, by="anna", reason="everything is broken")
        case "observed":
            DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="observe")
        case _:
            Run.objects.filter(pk=run.pk).update(state="planned")
    assert (bench.replay().taken, bench.history(), bench.delivered()) == (0, [], [])
    assert bench.letter().state == "waiting"


@pytest.mark.soak
def test_a_turn_leases_no_more_lanes_of_a_full_target(clock: Clock) -> None:
    bench, other = Workbench(), Workbench()
    bench.conf = replace(bench.conf, max_unsettled=1, lanes_per_task=5)
    bench.judge_by_absence()
    assert bench.redrive(*map(str, range(20))).taken == 1
    clock.advance(3)  # they are due again
    other.enqueue("elsewhere")
    before = dict(Lane.objects.filter(dlq=bench.dlq).values_list("pk", "fence"))
    assert bench.replay().taken == 1
    after = dict(Lane.objects.filter(dlq=bench.dlq).values_list("pk", "fence"))
    assert sum(after[lane] != fence for lane, fence in before.items()) == 5
    assert other.states() == {"elsewhere": "delivered"}


@pytest.mark.parametrize(
    ("seconds", "leases"),
    [
        pytest.param(0.0, 7, id="without a wait it tries before each of six messages, and at the end"),
        pytest.param(600.0, 3, id="it leases the lane, finds no other, and tries again when it has none"),
    ],
)
def test_a_slice_with_lanes_waits_before_it_tries_again_to_lease_more(
    seconds: float, leases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(fields=KEYED)
    bench.enqueue_lane(*map(str, range(6)))
    assert _count_leases(bench, monkeypatch, seconds) == leases


def test_a_slice_that_leased_lanes_leases_more_as_soon_as_it_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=KEYED, conf=replace(BRISK, lanes_per_task=2))
    for key in "bcd":
        bench.bury(key, key=key, n="1")
    bench.enqueue_lane("1", "2", "3", "4", key="a")
    assert _count_leases(bench, monkeypatch, 600.0) == 4


def _count_leases(bench: Workbench, monkeypatch: pytest.MonkeyPatch, seconds: float) -> int:
    """Replay all of the bench's letters; return how often the slice tried to lease lanes."""
    monkeypatch.setattr(replay_slice, "_LEASE_AGAIN_AFTER", seconds)
    monkeypatch.setattr(lanes, "lease", lease := Mock(wraps=lanes.lease))
    assert set(bench.states().values()) == {"waiting"}
    bench.replay()
    assert set(bench.states().values()) == {"delivered"}
    return lease.call_count


@pytest.fixture
def _looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns load breakers and rules once, unless something changes."""
    monkeypatch.setattr(replay_slice, "_SEEN_FOR", 3_600.0)


@pytest.mark.usefixtures("_looks_once")
def test_no_letter_is_sent_under_old_rules() -> None:
    bench = enqueued(*map(str, range(6)), conf=replace(BRISK, intent_size=2))
    with bench.meanwhile(lambda: rule("none of them", "discard")):
        bench.replay()
    assert sorted(bench.states().values()) == ["delivered"] * 2 + ["discarded"] * 4
    assert len(bench.history()) == 2


@pytest.mark.usefixtures("_looks_once")
def test_letters_go_on_after_the_last_rule_is_disabled() -> None:
    bench = Workbench(conf=replace(BRISK, intent_size=2))
    rule("all", "replay")
    bench.enqueue(*map(str, range(6)))
    with bench.meanwhile(lambda: rule("all", "replay", enabled=False)):
        bench.replay()
    assert bench.states() == {str(number): "delivered" for number in range(6)}


@pytest.mark.usefixtures("_looks_once")
def test_a_new_breaker_delays_no_letter() -> None:
    bench = enqueued(*map(str, range(6)), conf=replace(BRISK, lanes_per_task=2, intent_size=1))
    with bench.meanwhile(lambda: _route_into_a_new_class(bench)):
        bench.replay(seconds=5)
    assert list(Lane.objects.exclude(why="").values_list("why", flat=True)) == []
    assert bench.states() == {str(number): "delivered" for number in range(6)}


def _route_into_a_new_class(bench: Workbench) -> None:
    slow = RateClass.objects.create(name="slow", rate=1_000)
    send_limits.make_breakers({(bench.target.pk, slow.pk)})
    Letter.objects.filter(state="waiting").update(rate_class=slow)
    Lane.objects.filter(phase="ready").update(breaker=Breaker.objects.get(rate_class=slow))


def test_a_finished_letter_is_not_intended_and_its_key_stays_used() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    bench.enqueue("letter", idem="k")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    letter = bench.letter().pk
    assert len(intend([lane.lane_id], [lane.fence], [letter], margin=2, hold=8)) == 1
    Attempt.objects.update(outcome="accepted", closed_at=lanes.database_now(), holds_lane=False)
    Letter.objects.update(state="delivered", finished_at=lanes.database_now())
    Claim.objects.update(state="delivered")
    assert intend([lane.lane_id], [lane.fence], [letter], margin=2, hold=8) == []
    assert (Claim.objects.get().state, bench.letter().attempts, len(bench.history())) == ("delivered", 1, 1)


def test_a_letter_of_another_lane_is_not_intended() -> None:
    bench = enqueued("one", "other")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    other = Letter.objects.exclude(lane=lane.lane_id).get().pk
    assert intend([lane.lane_id], [lane.fence], [other], margin=2, hold=8) == []
    assert bench.history() == []


def _the_first_of_two_is_out() -> tuple[Workbench, LeasedLane, int, int]:
    """The bench, its leased lane, and the ids of both letters."""
    bench = Workbench(fields=KEYED)
    bench.enqueue_lane("1", "2", key="a")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    first, second = Letter.objects.order_by("sequence").values_list("pk", flat=True)
    assert len(intend([lane.lane_id], [lane.fence], [first], margin=2, hold=8)) == 1
    return bench, lane, first, second


def test_no_letter_is_intended_while_an_attempt_holds_its_lane() -> None:
    bench, lane, _, second = _the_first_of_two_is_out()
    assert intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8) == []
    assert bench.states() == {"1": "sending", "2": "waiting"}


def test_no_letter_is_intended_while_an_attempt_of_a_former_head_holds_the_lane() -> None:
    _, lane, first, second = _the_first_of_two_is_out()
    Letter.objects.filter(pk=first).update(state="parked", reason="attempts_spent", finished_at=lanes.database_now())
    assert intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8) == []
    Attempt.objects.update(holds_lane=False)
    assert len(intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8)) == 1
