"""Many workers at one limit: one canary is sent, a wave keeps its size, and unsettled letters keep to their limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import Count

from reprocessing.models import Attempt, Breaker, Claim, HealthCheck, Lane, Letter, Run, Wave
from reprocessing.store.ordering import lane_state, lanes, orphaned_lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.replay.intent import IntendedSend, intend
from tests.race.abreast import behind, together
from tests.race.letters import lettered
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 6


def _keyed(count: int) -> Workbench:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    for number in range(count):
        bench.bury(str(number), idem=str(number))
    bench.ready()
    return bench


def _owned(each: int) -> list[list[LaneState]]:
    """For each worker as many leased lanes with their heads."""
    found = []
    for number in range(WORKERS):
        leased = lanes.lease(f"w{number}", limit=each, lease=60)
        ids, fences = [lane.lane_id for lane in leased], [lane.fence for lane in leased]
        found.append(lane_state.advance(ids, fences, keep=True, lease=60))
    return found


def _intent(heads: list[LaneState], most: int = 1_000) -> Callable[[], list[IntendedSend]]:
    ids, fences = [head.lane_id for head in heads], [head.fence for head in heads]
    letters = [head.letter_id or 0 for head in heads]
    return lambda: intend(ids, fences, letters, margin=2, hold=8, most=most)


def _rest() -> None:
    retry_at = lanes.database_now() + timedelta(seconds=30)
    Breaker.objects.update(state="open", retry_at=retry_at, current_cooldown=30, epoch=7, why="a test")


def _cool_down(clock: Clock) -> Breaker:
    _rest()
    clock.advance(31)
    return Breaker.objects.get()


def _in_wave(size: int, run: Run | None = None) -> None:
    run = run or Run.objects.get()
    Run.objects.filter(pk=run.pk).update(waves=True)
    Wave.objects.create(run=run, no=1, size=size)


def _check(bench: Workbench) -> HealthCheck:
    return HealthCheck.objects.create(target=bench.target, kind="http", subject="https://shop.example.com/health")


def test_one_canary_is_sent_however_many_workers_try(clock: Clock) -> None:
    lettered(WORKERS * 3)
    own = _owned(3)
    breaker = _cool_down(clock)
    sent = together([_intent(heads) for heads in own])
    assert sum(len(some) for some in sent) == 1
    breaker.refresh_from_db()
    assert (breaker.state, breaker.epoch, breaker.retry_at) == ("half_open", 8, None)
    assert breaker.canary_until is not None
    assert list(Attempt.objects.values_list("breaker", "breaker_epoch")) == [(breaker.pk, 8)]


def test_a_canary_takes_no_key_but_its_own(clock: Clock) -> None:
    _keyed(3)
    heads, *_ = _owned(3)
    _cool_down(clock)
    assert (len(_intent(heads)()), Claim.objects.count()) == (1, 1)


def test_a_letter_behind_an_open_breaker_takes_no_key() -> None:
    _keyed(1)
    heads, *_ = _owned(1)
    _rest()
    assert (_intent(heads)(), Claim.objects.count()) == ([], 0)


def test_while_the_breaker_rests_nothing_is_sent_and_no_attempt_is_counted(clock: Clock) -> None:
    lettered(WORKERS)
    own = _owned(1)
    _rest()
    assert together([_intent(heads) for heads in own]) == [[]] * WORKERS
    assert Letter.objects.filter(attempts__gt=0).count() == 0
    clock.advance(29)
    assert lanes.lease("late", limit=9, lease=8) == []


def test_lanes_behind_an_open_breaker_are_neither_leased_nor_hinted_at(clock: Clock) -> None:
    lettered(3)
    leased = lanes.lease("first", limit=3, lease=8)
    heads = lane_state.advance(
        [lane.lane_id for lane in leased], [lane.fence for lane in leased]
    )  # handed back, looked at
    assert {head.breaker_id for head in heads} == {Breaker.objects.get().pk}
    _rest()
    assert (lanes.lease("second", limit=3, lease=8), lanes.hint(limit=3, lifetime=5)) == ([], [])
    clock.advance(31)
    assert len(lanes.hint(limit=3, lifetime=5)) == 3
    assert len(lanes.lease("second", limit=3, lease=8)) == 3


def test_the_slot_of_a_killed_canary_goes_to_another(clock: Clock) -> None:
    bench = lettered(3)
    _cool_down(clock)
    bench.replay_and_die(sent=False)
    assert Breaker.objects.get().canary_until is not None
    clock.advance(9)  # the dead worker's lease
    bench.replay()
    assert [outcome for _, outcome, _ in bench.history()] == ["unknown", *["accepted"] * 3]
    breaker = Breaker.objects.get()
    assert (breaker.state, breaker.canary_until) == ("closed", None)
    assert list(Attempt.objects.order_by("id").values_list("breaker_epoch", flat=True)) == [8, 9, 10, 11]


def test_a_canary_without_any_outcome_loses_its_slot_in_time(clock: Clock) -> None:
    """Its worker is dead, and its lane is stopped, so that nobody takes the lane over."""
    bench = lettered(2)
    _cool_down(clock)
    bench.replay_and_die(sent=False)
    Lane.objects.filter(phase="leased").update(stopped_at=lanes.database_now(), stopped_by="ann", stop_reason="a test")
    clock.advance(9)
    assert bench.replay(seconds=1).taken == 0
    clock.advance(4 * bench.conf.lease.total_seconds())
    assert bench.replay().taken == 1
    assert list(Attempt.objects.order_by("id").values_list("breaker_epoch", "outcome")) == [(8, None), (9, "accepted")]


def test_a_wave_is_never_larger_than_its_size() -> None:
    lettered(WORKERS * 5)
    _in_wave(10)
    together([_intent(heads) for heads in _owned(5) if heads])
    assert Attempt.objects.filter(wave__isnull=False).count() == Attempt.objects.count() == 10
    assert lanes.lease("late", limit=9, lease=8) == []


def test_an_intent_counts_a_wave_after_those_already_in_it() -> None:
    lettered(4)
    _in_wave(3)
    first, second, *_ = _owned(2)
    sent, late = behind(_intent(first), _intent(second))
    assert (len(sent), len(late)) == (2, 1)


def test_a_silent_first_attempt_lets_no_other_letter_of_its_lane_into_a_full_wave(clock: Clock) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    run = bench.enqueue("later", key="k")
    _in_wave(1, run)
    bench.replay_and_die(sent=False)
    clock.advance(9)  # the dead worker's lease
    (lane,) = lanes.lease("next", limit=1, lease=8)
    with transaction.atomic():
        orphaned_lanes.close_attempts("next", [lane.lane_id])
    later = Letter.objects.get()
    Letter.objects.create(
        dlq=bench.dlq, message_id="earlier", source=bench.source, target=bench.target, lane_id=lane.lane_id, run=run,
        state="waiting", planned=True, sequence="", body_hash=later.body_hash, size=1,
        first_sent_at=later.first_sent_at,
    )  # fmt: skip
    (head,) = lane_state.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    assert (head.letter_id != later.pk, head.phase) == (True, "ready")


def test_a_letter_that_is_sent_again_takes_no_second_place_in_a_wave(clock: Clock) -> None:
    bench = lettered(2)
    _in_wave(2)
    with bench.refusing("0"):
        bench.replay()
    bench.replay()
    waves = Attempt.objects.values("letter__payload__body").annotate(n=Count("id"), marked=Count("wave"))
    assert {(bytes(sent["letter__payload__body"]), sent["marked"]) for sent in waves} == {(b"0", 1), (b"1", 1)}


def test_no_target_has_more_unsettled_letters_than_allowed() -> None:
    bench = lettered(WORKERS * 4)
    bench.judge_by_absence()
    sent = together([_intent(heads, most=7) for heads in _owned(4)])
    assert sum(len(some) for some in sent) == 7
    assert Attempt.objects.filter(closed_at=None).count() == 7


def test_nothing_is_sent_to_a_target_whose_health_check_is_unknown_or_old(clock: Clock) -> None:
    bench = lettered(2)
    _check(bench)
    assert bench.replay().taken == 0
    HealthCheck.objects.update(verdict="healthy", checked_at=lanes.database_now())
    clock.advance(31)
    assert bench.replay().taken == 0
    HealthCheck.objects.update(checked_at=lanes.database_now())
    assert bench.replay().taken == 2
    assert set(Lane.objects.values_list("phase", flat=True)) == {"idle"}


def test_nothing_is_intended_for_a_target_that_became_unhealthy_after_the_gate() -> None:
    bench = lettered(1)
    heads, *_ = _owned(1)
    _check(bench)
    assert (_intent(heads)(), Attempt.objects.count()) == ([], 0)
