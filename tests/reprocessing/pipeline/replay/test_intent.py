"""The intent leaves letters alone that are not as the caller saw them."""

from __future__ import annotations

import pytest

from reprocessing.models import Attempt, Claim, DeadLetter
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import Leased
from reprocessing.store.replay.intent import intend
from tests.reprocessing.pipeline.bench import KEYED, Workbench, enqueued

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_finished_letter_is_not_intended_and_its_key_stays_used() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    bench.enqueue("letter", idem="k")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    letter = bench.letter().pk
    assert len(intend([lane.lane_id], [lane.fence], [letter], margin=2, hold=8)) == 1
    Attempt.objects.update(outcome="accepted", closed_at=lanes.clock(), holds_lane=False)
    DeadLetter.objects.update(state="delivered", finished_at=lanes.clock())
    Claim.objects.update(state="delivered")
    assert intend([lane.lane_id], [lane.fence], [letter], margin=2, hold=8) == []
    assert (Claim.objects.get().state, bench.letter().attempts, len(bench.history())) == ("delivered", 1, 1)


def test_a_letter_of_another_lane_is_not_intended() -> None:
    bench = enqueued("one", "other")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    other = DeadLetter.objects.exclude(lane=lane.lane_id).get().pk
    assert intend([lane.lane_id], [lane.fence], [other], margin=2, hold=8) == []
    assert bench.history() == []


def _the_first_of_two_is_out() -> tuple[Workbench, Leased, int, int]:
    """The bench, its leased lane, and the ids of both letters."""
    bench = Workbench(fields=KEYED)
    bench.enqueue_lane("1", "2", key="a")
    (lane,) = lanes.lease("me", limit=1, lease=8)
    first, second = DeadLetter.objects.order_by("sequence").values_list("pk", flat=True)
    assert len(intend([lane.lane_id], [lane.fence], [first], margin=2, hold=8)) == 1
    return bench, lane, first, second


def test_no_letter_is_intended_while_an_attempt_holds_its_lane() -> None:
    bench, lane, _, second = _the_first_of_two_is_out()
    assert intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8) == []
    assert bench.states() == {"1": "sending", "2": "waiting"}


def test_no_letter_is_intended_while_an_attempt_of_a_former_head_holds_the_lane() -> None:
    _, lane, first, second = _the_first_of_two_is_out()
    DeadLetter.objects.filter(pk=first).update(state="parked", reason="attempts_spent", finished_at=lanes.clock())
    assert intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8) == []
    Attempt.objects.update(holds_lane=False)
    assert len(intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8)) == 1
