from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Lane, Run, TaskHints
from reprocessing.store.ordering import lanes
from reprocessing.store.replay import task_hints
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

MOST, LEAST_LIFE, MOST_LIFE = 16, 5.0, 60.0


def _stocked(number: int, *, phase: str = "ready") -> Stock:
    """That many due lanes of a running run; leased ones are a dead worker's."""
    stock = Stock()
    due_at = lanes.database_now() - timedelta(minutes=1)
    of_run = {"dlq": stock.dlq, "source": stock.source, "run": stock.run, "phase": phase, "due_at": due_at}
    Lane.objects.bulk_create(Lane(key_hash=n.to_bytes(32, "big"), **of_run) for n in range(number))
    return stock


def _round() -> task_hints.HintRound:
    return task_hints.next_hint_round(most=MOST, least_life=LEAST_LIFE, most_life=MOST_LIFE)


def _hint() -> list[int]:
    turn = _round()
    return lanes.hint(limit=turn.width, lifetime=turn.lifetime) if turn.width else []


def _kept() -> tuple[int, float]:
    found = TaskHints.objects.get()
    return found.width, found.lifetime


def test_a_lane_is_not_hinted_at_twice_within_the_lifetime(clock: Clock) -> None:
    _stocked(3)
    hinted = _hint()
    clock.advance(LEAST_LIFE / 2)
    assert (len(hinted), _hint()) == (3, [])
    clock.advance(LEAST_LIFE / 2)
    assert sorted(_hint()) == sorted(hinted)


def test_the_first_round_is_full_and_none_follows_while_enough_hints_are_pending() -> None:
    _stocked(20)
    assert (len(_hint()), _kept()) == (MOST, (MOST, LEAST_LIFE))
    assert (_round().width, _hint()) == (0, [])


def test_hints_that_nobody_takes_halve_the_next_round_and_double_its_lifetime(clock: Clock) -> None:
    _stocked(MOST)
    seen = []
    for _ in range(6):
        seen.append((len(_hint()), *_kept()))
        clock.advance(_kept()[1] + 1)
    assert seen == [(16, 16, 5), (8, 8, 10), (4, 4, 20), (2, 2, 40), (1, 1, 60), (1, 1, 60)]


def test_while_it_is_unknown_whether_hints_are_taken_nothing_changes(clock: Clock) -> None:
    _stocked(1)
    _hint()
    clock.advance(LEAST_LIFE + 1)
    _hint()
    clock.advance(2)
    assert (_hint(), _kept()) == ([], (MOST // 2, 2 * LEAST_LIFE))


@pytest.mark.parametrize("why", ["a worker leases a lane", "no lane waits"])
def test_rounds_widen_again_as_soon_as(clock: Clock, why: str) -> None:
    _stocked(MOST)
    for _ in range(5):
        _hint()
        clock.advance(MOST_LIFE + 1)
    assert _kept() == (1, MOST_LIFE)
    if why == "no lane waits":
        Lane.objects.update(phase="idle", due_at=None, hinted_until=None)
    else:
        lanes.lease("worker", limit=1, lease=1_000)
    _hint()
    assert _kept() == (2, LEAST_LIFE)


def test_lanes_of_dead_owners_are_hinted_at_first_and_at_once(clock: Clock) -> None:
    _stocked(MOST)
    _hint()
    orphan = _stocked(1, phase="leased")
    _stocked(1)
    assert _hint() == [Lane.objects.get(dlq=orphan.dlq, phase="leased").pk]
    _stocked(5)
    assert [_hint(), _hint()] == [[], []]  # they make no room for others


def test_untaken_hints_of_a_stopped_dlq_say_nothing_about_workers(clock: Clock) -> None:
    stopped = _stocked(MOST)
    _hint()
    stops.stop(stopped.dlq.pk, by="anna", reason="broken")
    clock.advance(LEAST_LIFE + 1)
    _stocked(MOST)
    assert (len(_hint()), _kept()) == (MOST, (MOST, LEAST_LIFE))


def test_lanes_of_a_run_that_is_not_running_are_not_hinted_at() -> None:
    _stocked(3)
    Run.objects.update(state="finished")
    assert _hint() == []


@pytest.mark.parametrize("what", ["sweep", "purge"])
def test_a_sweep_or_a_purge_is_due_once_in_its_time(what: str, clock: Clock) -> None:
    _round()
    clock.advance(5)
    assert not task_hints.claim_if_due(what, every=10)
    clock.advance(5)
    assert [task_hints.claim_if_due(what, every=10) for _ in range(2)] == [True, False]
    clock.advance(10)
    assert task_hints.claim_if_due(what, every=10)


def test_a_purge_that_left_rows_is_due_again_soon(clock: Clock) -> None:
    _round()
    task_hints.make_purge_due(within=60, every=3_600)
    assert not task_hints.claim_if_due("purge", every=3_600)
    clock.advance(61)
    assert [task_hints.claim_if_due("purge", every=3_600) for _ in range(2)] == [True, False]
    assert not task_hints.claim_if_due("sweep", every=100)
