"""Two workers and one lane: one leases it, the other skips it; who moves its letters locks it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.replay.verdicts import Taken
from reprocessing.models import Attempt, Lane, Letter
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import settle
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.lanes import HandedBack, LeasedLane
from reprocessing.store.outcomes.evidence import OpenAttempt
from reprocessing.store.replay.settlement import LetterClosing, presume_delivered
from tests.race.abreast import elsewhere, holding_lanes, nobody_holds_letters, together, waits_for_us
from tests.race.letters import intend_head, lettered
from tests.reprocessing.pipeline.bench import KEYED, Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _lost(clock: Clock) -> tuple[LeasedLane, LeasedLane]:
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(9)
    (theirs,) = lanes.lease("second", limit=1, lease=8)
    return mine, theirs


def test_a_second_worker_waits_for_nobody() -> None:
    lettered(4)
    with elsewhere() as begin, transaction.atomic():
        mine = lanes.lease("first", limit=2, lease=8)
        theirs = begin(lambda: lanes.lease("second", limit=4, lease=8)).result(10)  # the first has not committed
    assert {lane.lane_id for lane in mine} & {lane.lane_id for lane in theirs} == set()
    assert len(mine) + len(theirs) == 4


def test_simultaneous_slices_send_every_letter_once_and_keep_the_order_of_every_lane() -> None:
    bench = Workbench(fields=KEYED)
    for number in range(48):
        bench.bury(str(number), key=f"account {number % 4}", n=str(number))
    bench.ready()
    together([lambda: bench.replay(45)] * 4)
    for account in range(4):
        found = Attempt.objects.filter(lane__key=f"account {account}").order_by("taken_at")
        sent = [int(bytes(body)) for body in found.values_list("letter__payload__body", flat=True)]
        assert sent == list(range(account, 48, 4))
    assert (len(bench.delivered()), set(Attempt.objects.values_list("no", "outcome"))) == (48, {(1, "accepted")})


@pytest.mark.parametrize("hinted", [False, True])
def test_a_lane_belongs_to_its_owner_until_the_lease_ends(clock: Clock, hinted: bool) -> None:
    lettered(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    only = [mine.lane_id] if hinted else None
    clock.advance(4)
    assert lanes.lease("second", limit=1, lease=8, only=only) == []
    clock.advance(5)
    (theirs,) = lanes.lease("second", limit=1, lease=8, only=only)
    assert (theirs.inherited, theirs.fence > mine.fence) == (True, True)


@pytest.mark.parametrize(("passed", "left"), [(1, 7), (3, 8)])
def test_a_lane_that_stays_leased_is_renewed_once_a_quarter_of_the_lease_has_passed(
    clock: Clock, passed: int, left: int
) -> None:
    lettered(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(passed)
    before = lanes.database_now()
    lane_state.advance([mine.lane_id], [mine.fence], keep=True, lease=8)
    due = Lane.objects.get().due_at
    assert due is not None
    assert round((due - before).total_seconds()) == left


def test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing(clock: Clock) -> None:
    lettered(1)
    mine, theirs = _lost(clock)
    before = Lane.objects.values().get()
    assert intend_head(mine, margin=0) == []
    assert lanes.renew([mine.lane_id], [mine.fence], lease=80) == set()
    lanes.hand_back([HandedBack(mine.lane_id, mine.fence, why="mine")])
    assert lanes.lock([mine.lane_id], [mine.fence]) == set()
    assert lane_state.advance([mine.lane_id], [mine.fence], passed=["9"], keep=True, lease=80) == []
    assert Lane.objects.values().get() == before
    assert lanes.lock([theirs.lane_id], [theirs.fence]) == {theirs.lane_id}


def test_an_owner_without_its_fence_closes_no_head(clock: Clock) -> None:
    bench = lettered(1)
    mine, _ = _lost(clock)
    closing = LetterClosing(bench.letter().pk, LetterState.DISCARDED)
    settled = settle.heads({(mine.lane_id, mine.fence): closing}, lease=8)
    assert (settled.lane_states, settled.deletable, bench.states()) == ([], [], {"0": "waiting"})


def test_an_intent_needs_enough_of_its_lease(clock: Clock) -> None:
    lettered(1)
    (lane,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(7)
    assert intend_head(lane) == []
    lane_state.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    assert len(intend_head(lane)) == 1


def test_of_simultaneous_intents_for_a_letter_one_is_committed() -> None:
    lettered(1)
    (lane,) = lanes.lease("first", limit=1, lease=8)
    head = Letter.objects.get().pk
    intents = together([lambda: intend_head(lane, head)] * 3)
    assert sorted(len(intended) for intended in intents) == [0, 0, 1]


def test_only_the_owner_moves_a_leased_lane() -> None:
    lettered(1)
    (lane,) = lanes.lease("first", limit=1, lease=8)
    before = Lane.objects.values().get()
    lane_state.advance([lane.lane_id], [None])
    assert Lane.objects.values().get() == before


def _settles(bench: Workbench) -> object:
    (lane,) = lanes.lease("me", limit=9, lease=8)
    intended = intend_head(lane)
    targets, dlqs = {bench.target.pk: bench.target}, {bench.dlq.pk: bench.dlq}
    outcomes = {attempt.attempt_id: Taken("id") for attempt in intended}
    return lambda: settle.attempts(intended, outcomes, targets=targets, dlqs=dlqs, dice=lambda: 0.0, lease=8)


def _closes(bench: Workbench) -> object:
    (lane,) = lanes.lease("me", limit=9, lease=8)
    closing = LetterClosing(bench.letter().pk, LetterState.DISCARDED)
    return lambda: settle.heads({(lane.lane_id, lane.fence): closing}, lease=8)


def _returns(bench: Workbench) -> object:
    bench.replay()
    bench.come_back(bench.delivered()[0])
    return bench.capture


def _promotes(bench: Workbench) -> object:
    bench.judge_by_absence(window=0)
    bench.replay()
    attempt = Attempt.objects.get()
    return lambda: resolve_outcomes._close([OpenAttempt(attempt.pk, attempt.lane_id)], presume_delivered)


def _releases(bench: Workbench) -> object:
    with bench.refusing("0", poison=True):
        bench.replay()
    return lambda: act_on_parked.release([bench.letter().pk], by="anna", reason="mended")


def _discards(bench: Workbench) -> object:
    with bench.refusing("0", poison=True):
        bench.replay()
    return lambda: act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")


@pytest.mark.parametrize("prepare", [_settles, _closes, _returns, _promotes, _releases, _discards])
def test_lanes_are_locked_before_their_letters_are_moved(prepare: Callable[[Workbench], Any]) -> None:
    bench = lettered(1)
    move = prepare(bench)
    with elsewhere() as begin:
        with holding_lanes():
            moving = begin(move)
            waits_for_us()
            assert nobody_holds_letters()
        moving.result(20)
