"""A stop, a pause or an abort against an intent: what was not committed before it is not sent after it."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetterQueue, Lane, Letter, Run
from reprocessing.store.ordering import lane_counts, lane_state, lanes
from reprocessing.store.replay import task_hints
from reprocessing.store.runs import progress, run_transitions
from reprocessing.store.safety import stops
from tests.race.letters import intend_head, lettered, of_one_key
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("what", ["a stop", "a stop of all", "observing", "a pause", "an abort"])
def test_lanes_that_were_leased_before_send_nothing_after(what: str) -> None:
    bench = lettered(1)
    (lane,) = lanes.lease("me", limit=1, lease=8)
    if what == "observing":
        DeadLetterQueue.objects.update(mode="observe")
    elif what == "a pause":
        run_transitions.pause(Run.objects.get().pk, by="anna", reason="the consumer is broken")
    elif what == "an abort":
        run_transitions.abort(Run.objects.get(), by="anna", reason="the consumer is broken", stop_dlq=False)
    else:
        stops.stop(bench.dlq.pk if what == "a stop" else None, by="anna", reason="the consumer is broken")
    assert intend_head(lane) == []
    assert (bench.letter().state, bench.letter().attempts, bench.history()) == ("waiting", 0, [])


def test_lanes_of_a_stopped_dlq_are_not_leased_hinted_at_or_kept() -> None:
    bench = lettered(2)
    (lane,) = lanes.lease("me", limit=1, lease=8)
    stops.stop(bench.dlq.pk, by="anna", reason="the consumer is broken")
    (standing,) = lane_state.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    assert (standing.phase, {found.phase for found in Lane.objects.all()}) == ("ready", {"ready"})
    assert (lanes.lease("me", limit=2, lease=8), lanes.hint(limit=2, lifetime=5)) == ([], [])
    stops.resume(bench.dlq.pk, by="anna", reason="mended")
    assert len(lanes.lease("me", limit=2, lease=8)) == 2


def test_a_stop_during_a_slice_ends_its_sends_and_settles_what_was_sent() -> None:
    bench = of_one_key(5)
    with bench.meanwhile(lambda: stops.stop(None, by="anna", reason="the consumer is broken")):
        assert bench.replay().taken == 1
    assert bench.delivered_bodies() == ["0"]
    assert sorted(bench.states().values()) == ["delivered", *["waiting"] * 4]
    assert bench.lane().phase == "ready"
    stops.resume(None, by="anna", reason="mended")
    assert bench.replay().taken == 4


@pytest.fixture
def bench() -> Workbench:
    found = Workbench(fields={"ordering_key": "attribute:key"})
    for key in "ab":
        found.bury(key, key=key)
    found.ready()
    return found


def _stop(bench: Workbench, key: str = "a") -> Lane:
    lane = bench.lane(key=key)
    stops.stop_lane(lane.pk, by="anna", reason="this customer is migrated")
    return lane


def test_a_stopped_lane_is_neither_leased_nor_hinted_at_and_others_are(bench: Workbench) -> None:
    lane, other = _stop(bench), bench.lane(key="b")
    assert lanes.lease("me", limit=2, lease=8, only=[lane.pk]) == []
    assert lanes.hint(limit=2, lifetime=5) == [other.pk]
    assert [leased.lane_id for leased in lanes.lease("me", limit=2, lease=8)] == [other.pk]


def test_a_lane_that_was_leased_before_it_was_stopped_sends_nothing_after(bench: Workbench) -> None:
    (leased,) = lanes.lease("me", limit=1, lease=8, only=[bench.lane(key="a").pk])
    _stop(bench)
    assert intend_head(leased) == []
    (standing,) = lane_state.advance([leased.lane_id], [leased.fence], keep=True, lease=8)
    assert (standing.phase, Letter.objects.get(lane=leased.lane_id).state) == ("ready", "waiting")


def test_a_lane_that_is_stopped_during_a_slice_settles_what_was_sent_and_stays() -> None:
    bench = of_one_key(3)
    with bench.meanwhile(lambda: _stop(bench)):
        assert bench.replay().taken == 1
    assert sorted(bench.states().values()) == ["delivered", "waiting", "waiting"]
    stops.resume_lane(bench.lane().pk, by="anna", reason="done")
    assert bench.replay().taken == 2
    assert bench.delivered_bodies() == ["0", "1", "2"]


def test_no_round_of_hints_waits_for_a_stopped_lane_and_its_status_says_who_stopped_it(bench: Workbench) -> None:
    lane = _stop(bench)
    Lane.objects.filter(pk=lane.pk).update(hinted_until=lanes.database_now())
    assert task_hints.next_hint_round(most=8, least_life=5, most_life=60).width == 8
    told = [found.why for found in lane_counts.lane_counts(bench.dlq.pk)]
    assert sorted(told) == ["", "stopped by anna: this customer is migrated"]
    assert lane.run_id
    assert progress.count_letters(lane.run_id).held == 1


def test_a_resumed_lane_is_hinted_at_at_once(bench: Workbench) -> None:
    hinted = lanes.hint(limit=2, lifetime=60)
    lane = _stop(bench)
    stops.resume_lane(lane.pk, by="anna", reason="done")
    assert (len(hinted), lanes.hint(limit=2, lifetime=60)) == (2, [lane.pk])
