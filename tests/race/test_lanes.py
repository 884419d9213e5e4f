"""Two workers and one lane: one leases it, the other passes by; whoever moves its letters locks it first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.replay.verdicts import Taken
from reprocessing.models import Attempt, DeadLetter, Lane
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import settle
from reprocessing.pipeline.runs import plan
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import HandedBack
from reprocessing.store.outcomes.evidence import Ripe
from reprocessing.store.replay.intent import Intended, intend
from reprocessing.store.replay.settlement import Closing, presume
from tests.race.abreast import elsewhere, holding_lanes, nobody_holds_letters, together, waits_for_us
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _letters(count: int, **fields: object) -> Workbench:
    bench = Workbench(fields=fields)
    for number in range(count):
        bench.bury(str(number))
    bench.ready()
    return bench


def _intend(leased: list[lanes.Leased], *, margin: float = 2.0) -> list[Intended]:
    heads = lanes.advance([one.lane_id for one in leased], [one.fence for one in leased], keep=True, lease=8)
    return intend(
        [one.lane_id for one in heads], [one.fence for one in heads], [one.letter_id or 0 for one in heads],
        margin=margin, hold=8,
    )  # fmt: skip


def test_slices_that_start_together_never_lease_one_lane() -> None:
    _letters(40)
    found = together([lambda owner=f"w{n}": lanes.lease(owner, limit=15, lease=8) for n in range(4)])  # type: ignore[misc]
    leased = [one.lane_id for some in found for one in some]
    assert sorted(leased) == sorted(Lane.objects.values_list("id", flat=True))
    assert len({one.fence for some in found for one in some}) == 40


def test_whoever_comes_second_waits_for_nobody() -> None:
    _letters(4)
    with elsewhere() as begin, transaction.atomic():
        mine = lanes.lease("first", limit=2, lease=8)
        theirs = begin(lambda: lanes.lease("second", limit=4, lease=8)).result(10)  # the first has not committed
    assert {one.lane_id for one in mine} & {one.lane_id for one in theirs} == set()
    assert len(mine) + len(theirs) == 4


def test_slices_abreast_send_every_letter_once() -> None:
    bench = _letters(60)
    together([lambda: bench.replay(45)] * 4)
    assert sorted(int(one["Body"]) for one in bench.delivered()) == list(range(60))
    assert set(Attempt.objects.values_list("no", "outcome")) == {(1, "accepted")}


def test_slices_abreast_keep_the_order_of_every_lane() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in range(48):
        bench.bury(str(number), key=f"account {number % 4}", n=str(number))
    bench.ready()
    together([lambda: bench.replay(45)] * 4)
    for account in range(4):
        found = Attempt.objects.filter(lane__key=f"account {account}").order_by("taken_at")
        sent = [int(bytes(body)) for body in found.values_list("letter__payload__body", flat=True)]
        assert sent == list(range(account, 48, 4))


def test_a_lease_that_lasts_is_nobody_else_s(clock: Clock) -> None:
    _letters(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(4)
    assert lanes.lease("second", limit=1, lease=8) == []
    clock.advance(5)
    (theirs,) = lanes.lease("second", limit=1, lease=8)
    assert (theirs.inherited, theirs.fence > mine.fence) == (True, True)


def test_who_was_told_of_a_lane_leaves_it_to_an_owner_whose_lease_lasts(clock: Clock) -> None:
    _letters(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(4)
    assert lanes.lease("second", limit=1, lease=8, only=[mine.lane_id]) == []
    clock.advance(5)
    (theirs,) = lanes.lease("second", limit=1, lease=8, only=[mine.lane_id])
    assert (theirs.inherited, theirs.fence > mine.fence) == (True, True)


def test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing(clock: Clock) -> None:
    _letters(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(9)
    (theirs,) = lanes.lease("second", limit=1, lease=8)
    before = Lane.objects.values().get()
    letter = _head()
    assert intend([mine.lane_id], [mine.fence], [letter], margin=0, hold=8) == []
    assert lanes.renew([mine.lane_id], [mine.fence], lease=80) == set()
    lanes.hand_back([HandedBack(mine.lane_id, mine.fence, why="mine")])
    assert lanes.lock([mine.lane_id], [mine.fence]) == set()
    assert lanes.advance([mine.lane_id], [mine.fence], passed=["9"], keep=True, lease=80) == []
    assert Lane.objects.values().get() == before
    assert lanes.lock([theirs.lane_id], [theirs.fence]) == {theirs.lane_id}


def test_an_owner_without_its_fence_closes_no_head(clock: Clock) -> None:
    bench = _letters(1)
    (mine,) = lanes.lease("first", limit=1, lease=8)
    clock.advance(9)
    assert len(lanes.lease("second", limit=1, lease=8)) == 1
    closing = Closing(_head(), LetterState.DISCARDED)
    settled = settle.heads({(mine.lane_id, mine.fence): closing}, lease=8)
    assert (settled.standings, settled.deletable, bench.states()) == ([], [], {"0": "waiting"})


def test_an_intent_needs_enough_of_its_lease(clock: Clock) -> None:
    _letters(1)
    leased = lanes.lease("first", limit=1, lease=8)
    clock.advance(7)
    assert intend([leased[0].lane_id], [leased[0].fence], [_head()], margin=2, hold=8) == []
    assert len(_intend(leased)) == 1  # renewed by NEXT


def _head() -> int:
    return DeadLetter.objects.earliest("id").pk


def test_a_letter_is_intended_once() -> None:
    _letters(1)
    (lane,) = lanes.lease("first", limit=1, lease=8)
    intents = together([lambda: intend([lane.lane_id], [lane.fence], [_head()], margin=2, hold=8)] * 3)
    assert sorted(len(one) for one in intents) == [0, 0, 1]


def test_nobody_but_its_owner_moves_a_leased_lane() -> None:
    _letters(1)
    (lane,) = lanes.lease("first", limit=1, lease=8)
    before = Lane.objects.values().get()
    lanes.advance([lane.lane_id], [None])
    assert Lane.objects.values().get() == before


Move = Callable[[Workbench], object]


def _settles(bench: Workbench) -> object:
    leased = lanes.lease("me", limit=9, lease=8)
    intended = _intend(leased)
    targets, dlqs = {bench.target.pk: bench.target}, {bench.dlq.pk: bench.dlq}
    outcomes = {one.attempt_id: Taken("id") for one in intended}
    return lambda: settle.attempts(intended, outcomes, targets=targets, dlqs=dlqs, dice=lambda: 0.0, lease=8)


def _closes(bench: Workbench) -> object:
    (one,) = lanes.lease("me", limit=9, lease=8)
    closing = Closing(bench.letter().pk, LetterState.DISCARDED)
    return lambda: settle.heads({(one.lane_id, one.fence): closing}, lease=8)


def _returns(bench: Workbench) -> object:
    bench.replay()
    bench.come_back(bench.delivered()[0])
    return bench.capture


def _promotes(bench: Workbench) -> object:
    bench.judge_by_absence(window=0)
    bench.replay()
    attempt = Attempt.objects.get()
    return lambda: resolve_outcomes._close([Ripe(attempt.pk, attempt.lane_id)], presume)


def _releases(bench: Workbench) -> object:
    with bench.refusing("0", poison=True):
        bench.replay()
    return lambda: act_on_parked.release([bench.letter().pk], by="anna", reason="mended")


def _discards(bench: Workbench) -> object:
    with bench.refusing("0", poison=True):
        bench.replay()
    return lambda: act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")


@pytest.mark.parametrize("prepare", [_settles, _closes, _returns, _promotes, _releases, _discards])
def test_whoever_moves_letters_locks_their_lanes_first(prepare: Callable[[Workbench], Any]) -> None:
    bench = _letters(1)
    move = prepare(bench)
    with elsewhere() as begin:
        with holding_lanes():
            moving = begin(move)
            waits_for_us()
            assert nobody_holds_letters()
        moving.result(20)


def test_whole_lanes_are_enlisted_behind_the_lock_of_those_that_are_there() -> None:
    fields = {"ordering_key": "attribute:key", "sequence": "attribute:n"}
    bench = Workbench(fields=fields)
    bench.bury("1", key="a", n="1")
    bench.ready()
    bench.bury("2", key="a", n="2")
    run = bench.ready(limit=0)
    with elsewhere() as begin:
        with holding_lanes():
            enlisting = begin(lambda: plan.enlist(bench.dlq, run))
            waits_for_us()
            assert bench.states() == {"1": "waiting", "2": "captured"}
        assert enlisting.result(20).letters == 1
