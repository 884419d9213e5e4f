"""Many workers before one brake: a canary goes alone, a wave keeps its size, a target has no more unsettled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import Count

from reprocessing.models import Attempt, Breaker, Claim, DeadLetter, HealthCheck, Lane, Run, Wave
from reprocessing.store.ordering import lanes, orphaned_lanes
from reprocessing.store.replay.intent import Intended, intend
from reprocessing.store.safety import circuit_breakers
from tests.race.abreast import elsewhere, together, waits_for_us
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 6


def _bench(letters: int) -> tuple[Workbench, Run]:
    bench = Workbench()
    for number in range(letters):
        bench.bury(str(number))
    return bench, bench.ready()


def _own(bench: Workbench, each: int) -> list[list[lanes.Standing]]:
    """For each worker as many leased lanes with their heads."""
    found = []
    for number in range(WORKERS):
        leased = lanes.lease(f"w{number}", limit=each, lease=60)
        found.append(lanes.advance([one.lane_id for one in leased], [one.fence for one in leased], keep=True, lease=60))
    return found


def _intent(heads: list[lanes.Standing], most: int = 1_000) -> Callable[[], list[Intended]]:
    return lambda: intend(
        [one.lane_id for one in heads], [one.fence for one in heads], [one.letter_id or 0 for one in heads],
        margin=2, hold=8, most=most,
    )  # fmt: skip


def _open(bench: Workbench, clock: Clock) -> Breaker:
    """The target's breaker, open, and its cooldown over."""
    Breaker.objects.filter(target=bench.target).update(
        state="open", retry_at=lanes.clock() + timedelta(seconds=30), rest=30, epoch=7, why="a test"
    )
    clock.advance(31)
    return Breaker.objects.get(target=bench.target)


def test_one_canary_goes_however_many_workers_try(clock: Clock) -> None:
    bench, _ = _bench(WORKERS * 3)
    own = _own(bench, 3)
    breaker = _open(bench, clock)
    sent = together([_intent(heads) for heads in own])
    assert sum(len(some) for some in sent) == 1
    breaker.refresh_from_db()
    assert (breaker.state, breaker.epoch, breaker.retry_at) == ("half_open", 8, None)
    assert breaker.canary_until is not None
    assert list(Attempt.objects.values_list("breaker", "breaker_epoch")) == [(breaker.pk, 8)]


def test_a_canary_takes_no_key_but_its_own(clock: Clock) -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    for number in range(3):
        bench.bury(str(number), idem=str(number))
    bench.ready()
    heads, *_ = _own(bench, 3)
    _open(bench, clock)
    assert (len(_intent(heads)()), Claim.objects.count()) == (1, 1)


def test_what_an_open_breaker_holds_back_takes_no_key() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    bench.bury("letter", idem="k")
    bench.ready()
    heads, *_ = _own(bench, 1)
    Breaker.objects.filter(target=bench.target).update(
        state="open", retry_at=lanes.clock() + timedelta(seconds=30), rest=30
    )
    assert (_intent(heads)(), Claim.objects.count()) == ([], 0)


def test_while_the_breaker_rests_nothing_goes_and_no_attempt_is_counted(clock: Clock) -> None:
    bench, _ = _bench(WORKERS)
    own = _own(bench, 1)
    Breaker.objects.filter(target=bench.target).update(
        state="open", retry_at=lanes.clock() + timedelta(seconds=30), rest=30
    )
    assert together([_intent(heads) for heads in own]) == [[]] * WORKERS
    assert DeadLetter.objects.filter(attempts__gt=0).count() == 0
    clock.advance(29)
    assert lanes.lease("late", limit=9, lease=8) == []


def test_an_open_breaker_s_lanes_are_leased_by_nobody_and_told_to_nobody(clock: Clock) -> None:
    _bench(3)
    leased = lanes.lease("first", limit=3, lease=8)
    heads = lanes.advance([one.lane_id for one in leased], [one.fence for one in leased])  # handed back, looked at
    assert {one.breaker_id for one in heads} == {Breaker.objects.get().pk}
    Breaker.objects.update(state="open", retry_at=lanes.clock() + timedelta(seconds=30), rest=30)
    assert (lanes.lease("second", limit=3, lease=8), lanes.hint(limit=3, lifetime=5)) == ([], [])
    clock.advance(31)
    assert len(lanes.hint(limit=3, lifetime=5)) == 3
    assert len(lanes.lease("second", limit=3, lease=8)) == 3


def test_a_killed_canary_s_slot_is_another_s(clock: Clock) -> None:
    bench, _ = _bench(3)
    _open(bench, clock)
    bench.replay_and_die(sent=False)
    assert Breaker.objects.get().canary_until is not None
    clock.advance(9)  # the dead worker's lease
    bench.replay()
    assert [outcome for _, outcome, _ in bench.history()] == ["unknown", *["accepted"] * 3]
    breaker = Breaker.objects.get()
    assert (breaker.state, breaker.canary_until) == ("closed", None)
    epochs = list(Attempt.objects.order_by("id").values_list("breaker_epoch", flat=True))
    assert epochs == [8, 9, 10, 11]


def test_a_canary_of_which_nothing_is_ever_heard_gives_up_its_place_in_time(clock: Clock) -> None:
    """Its worker is dead, and its lane is stopped, so that nobody takes it over."""
    bench, _ = _bench(2)
    _open(bench, clock)
    bench.replay_and_die(sent=False)
    Lane.objects.filter(phase="leased").update(stopped_at=lanes.clock(), stopped_by="ann", stop_reason="a test")
    clock.advance(9)
    assert bench.replay(seconds=1).taken == 0
    clock.advance(4 * bench.conf.lease.total_seconds())
    assert bench.replay().taken == 1
    assert list(Attempt.objects.order_by("id").values_list("breaker_epoch", "outcome")) == [(8, None), (9, "accepted")]


def test_a_wave_is_never_larger_than_its_size() -> None:
    bench, run = _bench(WORKERS * 5)
    Run.objects.filter(pk=run.pk).update(waves=True)
    Wave.objects.create(run=run, no=1, size=10)
    own = [heads for heads in _own(bench, 5) if heads]
    together([_intent(heads) for heads in own])
    assert Attempt.objects.filter(wave__isnull=False).count() == Attempt.objects.count() == 10
    assert lanes.lease("late", limit=9, lease=8) == []


def test_an_intent_counts_a_wave_after_whoever_is_in_it() -> None:
    bench, run = _bench(4)
    Run.objects.filter(pk=run.pk).update(waves=True)
    Wave.objects.create(run=run, no=1, size=3)
    first, second, *_ = _own(bench, 2)
    with elsewhere() as begin:
        with transaction.atomic():
            sent = _intent(first)()
            late = begin(_intent(second))
            waits_for_us()
        assert (len(sent), len(late.result(10))) == (2, 1)


def test_a_letter_whose_first_try_says_nothing_lets_no_other_of_its_lane_into_a_full_wave(clock: Clock) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    bench.bury("later", key="k")
    run = bench.ready()
    Run.objects.filter(pk=run.pk).update(waves=True)
    Wave.objects.create(run=run, no=1, size=1)
    bench.replay_and_die(sent=False)
    clock.advance(9)  # the dead worker's lease
    (lane,) = lanes.lease("next", limit=1, lease=8)
    with transaction.atomic():
        orphaned_lanes.close("next", [lane.lane_id])
    later = DeadLetter.objects.get()
    DeadLetter.objects.create(
        dlq=bench.dlq, message_id="earlier", origin=bench.origin, target=bench.target, lane_id=lane.lane_id, run=run,
        state="waiting", planned=True, sequence="", body_hash=later.body_hash, size=1, died_at=later.died_at,
    )  # fmt: skip
    (head,) = lanes.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    assert (head.letter_id != later.pk, head.phase) == (True, "ready")


def test_a_letter_that_was_touched_takes_no_second_place_in_a_wave(clock: Clock) -> None:
    bench, run = _bench(2)
    Run.objects.filter(pk=run.pk).update(waves=True)
    Wave.objects.create(run=run, no=1, size=2)
    with bench.refusing("0"):
        bench.replay()
    bench.replay()
    waves = Attempt.objects.values("letter__payload__body").annotate(n=Count("id"), marked=Count("wave"))
    assert {(bytes(one["letter__payload__body"]), one["marked"]) for one in waves} == {(b"0", 1), (b"1", 1)}


def test_no_target_has_more_unsettled_letters_than_it_may() -> None:
    bench, _ = _bench(WORKERS * 4)
    bench.judge_by_absence()
    own = _own(bench, 4)
    sent = together([_intent(heads, most=7) for heads in own])
    assert sum(len(some) for some in sent) == 7
    assert Attempt.objects.filter(closed_at=None).count() == 7


def test_nothing_goes_to_an_unwell_target_and_what_is_not_known_is_unwell(clock: Clock) -> None:
    bench, _ = _bench(2)
    check = HealthCheck.objects.create(target=bench.target, kind="http", subject="https://shop.example.com/health")
    assert bench.replay().taken == 0
    HealthCheck.objects.filter(pk=check.pk).update(verdict="healthy", checked_at=lanes.clock())
    clock.advance(31)
    assert bench.replay().taken == 0  # too long ago
    HealthCheck.objects.filter(pk=check.pk).update(checked_at=lanes.clock())
    assert bench.replay().taken == 2
    assert set(Lane.objects.values_list("phase", flat=True)) == {"idle"}


def test_nothing_is_intended_for_a_target_that_turned_unwell_after_its_heads_passed_the_gate() -> None:
    bench, _ = _bench(1)
    heads, *_ = _own(bench, 1)
    HealthCheck.objects.create(target=bench.target, kind="http", subject="https://shop.example.com/health")
    assert (_intent(heads)(), Attempt.objects.count()) == ([], 0)


def test_two_looks_at_the_same_failures_open_a_breaker_once() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    for _ in range(3):
        bench.bury("the same")
    bench.ready()
    with bench.refusing("the same"):
        bench.replay()
    breaker = Breaker.objects.get()
    assert breaker.state == "closed"
    Breaker.objects.update(threshold=3)
    moved = together([lambda: circuit_breakers.look([breaker.pk])] * 4)
    assert sorted(len(some) for some in moved) == [0, 0, 0, 1]
    assert Breaker.objects.get().epoch == breaker.epoch + 1
