"""A stop against an intent: what was not committed before the stop is not sent after it."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetter, DeadLetterQueue
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import intend
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("what", ["a stop", "a stop of all", "observing"])
def test_lanes_that_were_leased_before_send_nothing_after(what: str) -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    (lane,) = lanes.lease("me", limit=1, lease=8)
    if what == "observing":
        DeadLetterQueue.objects.update(mode="observe")
    else:
        stops.stop(bench.dlq.pk if what == "a stop" else None, by="anna", reason="the consumer is broken")
    letter = DeadLetter.objects.get()
    assert intend([lane.lane_id], [lane.fence], [letter.pk], margin=2, hold=8) == []
    assert (bench.letter().state, bench.letter().attempts, bench.history()) == ("waiting", 0, [])


def test_lanes_of_what_is_stopped_are_not_leased() -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    stops.stop(bench.dlq.pk, by="anna", reason="the consumer is broken")
    assert (lanes.lease("me", limit=1, lease=8), lanes.hint(limit=1, lifetime=5)) == ([], [])
    stops.resume(bench.dlq.pk, by="anna", reason="mended")
    assert len(lanes.lease("me", limit=1, lease=8)) == 1


def test_lanes_of_what_is_stopped_are_not_kept() -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    (lane,) = lanes.lease("me", limit=1, lease=8)
    stops.stop(bench.dlq.pk, by="anna", reason="the consumer is broken")
    (standing,) = lanes.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    assert (standing.phase, bench.lane().phase) == ("ready", "ready")


def test_a_stop_in_the_middle_of_a_slice_ends_its_sending_and_settles_what_is_on_the_wire() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in range(5):
        bench.bury(str(number), key="a", n=str(number))
    bench.ready()
    with bench.meanwhile(lambda: stops.stop(None, by="anna", reason="the consumer is broken")):
        assert bench.replay().taken == 1
    assert [one["Body"] for one in bench.delivered()] == ["0"]
    assert sorted(bench.states().values()) == ["delivered", *["waiting"] * 4]
    assert bench.lane().phase == "ready"
    stops.resume(None, by="anna", reason="mended")
    assert bench.replay().taken == 4
