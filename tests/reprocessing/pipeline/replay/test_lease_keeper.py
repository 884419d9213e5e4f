"""Leases are renewed while letters are being sent, and no request begins without a lease."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from datetime import timedelta

import pytest
from django.db import DatabaseError

from reprocessing.models import Lane, Letter
from reprocessing.pipeline.replay import lease_keeper, replay_slice, send
from reprocessing.pipeline.replay.lease_keeper import SEND_MARGIN, LeaseKeeper
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import IntendedSend, intend
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Clock, Outcomes, enqueued, fake_time
from tests.reprocessing.pipeline.interposed import happens_after

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 8.0


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew leases every 20 ms."""

    def soon(trips: Sequence[Future[Outcomes]], timeout: float) -> object:
        assert timeout == LEASE / 3
        return wait(trips, timeout=0.02)

    monkeypatch.setattr(lease_keeper, "wait", soon)


def _intended(count: int = 1) -> list[IntendedSend]:
    enqueued(*map(str, range(count)))
    leased = lanes.lease("me", limit=count, lease=LEASE)
    letters = dict(Letter.objects.values_list("lane", "id"))
    return intend(
        [lane.lane_id for lane in leased], [lane.fence for lane in leased], [letters[lane.lane_id] for lane in leased],
        margin=SEND_MARGIN, hold=LEASE,
    )  # fmt: skip


def test_a_send_that_outlasts_a_lease_keeps_its_lanes(clock: Clock) -> None:
    bench = enqueued("letter")
    taken_away: list[lanes.LeasedLane] = []

    def lasts() -> None:
        for _ in range(3):
            clock.advance(LEASE - 2)
            eventually(
                lambda: (bench.lane().due_at or lanes.database_now()) - lanes.database_now() > timedelta(seconds=7),
                within=10,
            )
            taken_away.extend(lanes.lease("another", limit=1, lease=LEASE))

    with bench.meanwhile(lasts):
        assert bench.replay().taken == 1
    assert (taken_away, bench.history()) == ([], [(1, "accepted", 0)])


def test_a_turn_that_froze_after_its_intent_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, frozen = enqueued("letter"), 0.0

    def monotonic() -> float:
        return time.monotonic() + frozen

    def freezes() -> None:
        nonlocal frozen
        frozen += LEASE

    for module in (lease_keeper, replay_slice, send):
        monkeypatch.setattr(module, "time", fake_time(monotonic))
    happens_after(monkeypatch, replay_slice, "intend", freezes)
    bench.replay(seconds=1)
    assert ({outcome for _, outcome, _ in bench.history()}, bench.delivered()) == ({"not_sent"}, [])


def test_after_a_lost_lane_the_first_lease_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    intended = _intended(2)
    Lane.objects.filter(pk=intended[0].lane_id).update(fence=2**40)
    owned, renewed = LeaseKeeper(intended, LEASE, began=time.monotonic()), list[set[int]]()
    first, renew = owned.until, lanes.renew

    def counted(ids: Sequence[int], fences: Sequence[int], *, lease: float) -> set[int]:
        renewed.append(renew(ids, fences, lease=lease))
        return renewed[-1]

    def trip() -> Outcomes:
        eventually(lambda: len(renewed) > 1, within=10)
        return {}

    monkeypatch.setattr(lanes, "renew", counted)
    owned.send(trip)
    assert (renewed[0], owned.until) == ({intended[1].lane_id}, first)


def test_a_failed_renewal_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    owned, tries = LeaseKeeper(_intended(), LEASE, began=time.monotonic()), list[int]()
    first, renew = owned.until, lanes.renew

    def fails_once(ids: Sequence[int], fences: Sequence[int], *, lease: float) -> set[int]:
        tries.append(1)
        if len(tries) == 1:
            raise DatabaseError("the server closed the connection")
        return renew(ids, fences, lease=lease)

    def trip() -> Outcomes:
        eventually(lambda: owned.until > first, within=10)
        return {}

    monkeypatch.setattr(lanes, "renew", fails_once)
    owned.send(trip)
    assert len(tries) > 1
    assert owned.until <= time.monotonic() + LEASE - SEND_MARGIN
