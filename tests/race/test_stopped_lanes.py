"""One lane is stopped: it sends nothing more, whoever had leased it, and all others go on."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetter, Lane
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering import lanes
from reprocessing.store.replay import task_hints
from reprocessing.store.replay.intent import intend
from reprocessing.store.runs import progress
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench() -> Workbench:
    """Two lanes that are due, of a letter each."""
    found = Workbench(fields={"ordering_key": "attribute:key"})
    for key in "ab":
        found.bury(key, key=key)
    found.ready()
    return found


def _stop(bench: Workbench, key: str = "a") -> Lane:
    lane = bench.lane(key=key)
    stops.stop_lane(lane.pk, by="anna", reason="this customer is migrated")
    return lane


def test_a_stopped_lane_is_neither_leased_nor_told_of_and_the_others_are(bench: Workbench) -> None:
    lane, other = _stop(bench), bench.lane(key="b")
    assert lanes.lease("me", limit=2, lease=8, only=[lane.pk]) == []
    assert lanes.hint(limit=2, lifetime=5) == [other.pk]
    assert [one.lane_id for one in lanes.lease("me", limit=2, lease=8)] == [other.pk]


def test_a_lane_that_was_leased_before_it_was_stopped_sends_nothing_after(bench: Workbench) -> None:
    (leased,) = lanes.lease("me", limit=1, lease=8, only=[bench.lane(key="a").pk])
    _stop(bench)
    letter = DeadLetter.objects.get(lane=leased.lane_id)
    assert intend([leased.lane_id], [leased.fence], [letter.pk], margin=2, hold=8) == []
    (stands,) = lanes.advance([leased.lane_id], [leased.fence], keep=True, lease=8)
    assert (stands.phase, DeadLetter.objects.get(pk=letter.pk).state) == ("ready", "waiting")


def test_a_lane_that_is_stopped_in_the_middle_of_a_slice_settles_what_is_on_the_wire_and_stays() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in range(3):
        bench.bury(str(number), key="a", n=str(number))
    bench.ready()
    with bench.meanwhile(lambda: _stop(bench)):
        assert bench.replay().taken == 1
    assert sorted(bench.states().values()) == ["delivered", "waiting", "waiting"]
    stops.resume_lane(bench.lane().pk, by="anna", reason="done")
    assert bench.replay().taken == 2
    assert [one["Body"] for one in bench.delivered()] == ["0", "1", "2"]


def test_nobody_waits_for_a_stopped_lane_and_its_standing_says_who_stopped_it(bench: Workbench) -> None:
    lane = _stop(bench)
    Lane.objects.filter(pk=lane.pk).update(hinted_until=lanes.clock())
    assert task_hints.next_round(most=8, least_life=5, most_life=60).width == 8
    told = [one.why for one in dlq_status.lanes(bench.dlq.pk)]
    assert sorted(told) == ["", "stopped by anna: this customer is migrated"]
    assert bench.lane(key="a").run_id
    assert progress.tally(bench.lane(key="a").run_id or 0).held == 1


def test_a_lane_that_goes_on_is_told_of_at_once(bench: Workbench) -> None:
    told = lanes.hint(limit=2, lifetime=60)
    lane = _stop(bench)
    stops.resume_lane(lane.pk, by="anna", reason="done")
    assert (len(told), lanes.hint(limit=2, lifetime=60)) == (2, [lane.pk])
