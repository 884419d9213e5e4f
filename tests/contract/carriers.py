"""The contract of carriers (domain.carrier), whatever kind of target they carry letters to.

A module of tests inherits `CarrierContract` and brings a fixture `road`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any

import pytest

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.targets.async_sender import AsyncSender
from tests.conditions import eventually

LATE = 0.05  #: seconds until a target answers that is late
SECRET = "a-payload-that-nobody-is-shown"  #: stands in every call's payload, and in every answer


class Does(StrEnum):
    TAKES = "takes"
    TAKES_LATE = "takes late"  #: after `LATE`
    FAILS = "fails"
    ASKS_TO_WAIT = "asks to wait"  #: for seven seconds, if it can say for how long
    HANGS = "hangs"  #: reads the call, and never answers
    BREAKS_OFF = "breaks off"  #: reads the call, and closes the connection
    IS_AWAY = "is away"  #: nobody listens


class Road(ABC):
    @abstractmethod
    def carrier(self, *, limit: int) -> AsyncSender[Any]:
        """A new carrier, closed with the test."""

    @abstractmethod
    def call(self, attempt: int, does: Does, *, timeout: float = 5.0) -> Any:  # noqa: ANN401 - of the carrier's own type
        """A call whose payload holds `SECRET`."""

    @abstractmethod
    def asked(self) -> int:
        """Calls that have reached the stand-in."""

    @abstractmethod
    def most_open(self) -> int:
        """The most of them that it had open at the same time."""


def always() -> bool:
    return True


def never() -> bool:
    return False


def all_ended(carrier: AsyncSender[Any], *, within: float = 30.0) -> list[tuple[int, Outcome]]:
    told: list[tuple[int, Outcome]] = []
    until = time.monotonic() + within
    while carrier.open:
        assert time.monotonic() < until, f"{carrier.open} still open after {within:g} s"
        told += carrier.ended(within=0.1)
    return told


class CarrierContract:
    @pytest.mark.parametrize(
        ("does", "kind"),
        [
            (Does.TAKES, Taken),
            (Does.FAILS, Refused),
            (Does.ASKS_TO_WAIT, NotSent),
            (Does.HANGS, Unknown),
            (Does.BREAKS_OFF, Unknown),
            (Does.IS_AWAY, NotSent),
        ],
    )
    def test_an_outcome_is_what_is_known_and_no_more(self, road: Road, does: Does, kind: type[Outcome]) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(7, does, timeout=1.0 if does is Does.HANGS else 20.0)], may_start=always)
        [(attempt, outcome)] = all_ended(carrier)
        assert (attempt, type(outcome)) == (7, kind)
        assert getattr(outcome, "unreachable", False) is (does is Does.IS_AWAY)
        assert SECRET not in repr(outcome)

    def test_what_waits_is_asked_for_in_a_call_of_its_own(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(1, Does.ASKS_TO_WAIT)], may_start=always)
        [(_, outcome)] = all_ended(carrier)
        assert isinstance(outcome, NotSent)
        assert outcome.after is not None
        assert not outcome.unreachable

    def test_each_call_is_told_of_once_under_its_attempt(self, road: Road) -> None:
        carrier = road.carrier(limit=8)
        kinds = {1: Does.TAKES, 2: Does.FAILS, 3: Does.TAKES_LATE, 4: Does.BREAKS_OFF, 5: Does.IS_AWAY, 6: Does.TAKES}
        carrier.start([road.call(one, does) for one, does in kinds.items()], may_start=always)
        told = all_ended(carrier)
        assert sorted(attempt for attempt, _ in told) == list(kinds)
        taken = {attempt for attempt, outcome in told if isinstance(outcome, Taken)}
        assert taken == {1, 3, 6}
        assert carrier.ended(within=0) == []

    def test_calls_are_open_side_by_side(self, road: Road) -> None:
        carrier = road.carrier(limit=10)
        carrier.start([road.call(one, Does.TAKES_LATE) for one in range(10)], may_start=always)
        assert [type(outcome) for _, outcome in all_ended(carrier)] == [Taken] * 10
        assert road.most_open() > 1

    def test_no_more_are_open_than_may_be_and_the_others_have_their_turn(self, road: Road) -> None:
        carrier = road.carrier(limit=3)
        carrier.start([road.call(one, Does.TAKES_LATE) for one in range(9)], may_start=always)
        assert carrier.open == 9
        assert sorted(attempt for attempt, _ in all_ended(carrier)) == list(range(9))
        assert road.most_open() <= 3
        assert road.asked() == 9

    def test_one_that_hangs_holds_up_no_other(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(0, Does.HANGS, timeout=30)], may_start=always)
        carrier.start([road.call(one, Does.TAKES) for one in range(1, 6)], may_start=always)
        told: list[int] = []

        def five_ended() -> bool:
            told.extend(attempt for attempt, _ in carrier.ended(within=0.05))
            return len(told) >= 5

        eventually(five_ended, within=5)
        assert sorted(told) == [1, 2, 3, 4, 5]
        assert carrier.open == 1

    def test_what_may_not_start_is_not_sent(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(1, Does.TAKES)], may_start=never)
        [(attempt, outcome)] = all_ended(carrier)
        assert attempt == 1
        assert isinstance(outcome, NotSent)
        assert not outcome.unreachable
        assert road.asked() == 0

    def test_what_waited_for_room_is_asked_again_when_its_turn_comes(self, road: Road) -> None:
        carrier = road.carrier(limit=1)
        carrier.start([road.call(one, Does.TAKES_LATE) for one in (1, 2, 3)], may_start=lambda: road.asked() == 0)
        told = dict(all_ended(carrier))
        assert {attempt: type(outcome) for attempt, outcome in told.items()} == {1: Taken, 2: NotSent, 3: NotSent}
        assert road.asked() == 1

    def test_waiting_ends_with_the_first_that_ended(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(1, Does.HANGS, timeout=30), road.call(2, Does.TAKES)], may_start=always)
        assert [attempt for attempt, _ in carrier.ended(within=20)] == [2]
        assert carrier.open == 1

    @pytest.mark.timeout(60)
    def test_waiting_is_bounded_and_with_nothing_open_there_is_none(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        assert carrier.ended(within=600) == []
        carrier.start([road.call(1, Does.HANGS, timeout=30)], may_start=always)
        assert carrier.ended(within=0.05) == []
        assert carrier.open == 1

    def test_a_started_call_goes_out_although_nobody_listens_for_its_end(self, road: Road) -> None:
        carrier = road.carrier(limit=2)
        carrier.start([road.call(1, Does.TAKES)], may_start=always)
        all_ended(carrier)
        carrier.start([road.call(2, Does.TAKES)], may_start=always)  # over the connection of the first
        eventually(lambda: road.asked() == 2, within=10)
        assert all_ended(carrier) == [(2, Taken())]

    def test_what_is_closed_tells_nothing_more(self, road: Road) -> None:
        carrier = road.carrier(limit=1)
        carrier.start([road.call(one, Does.HANGS, timeout=30) for one in (1, 2, 3)], may_start=always)
        carrier.close()
        assert carrier.open == 0
        assert road.asked() <= 1

    def test_no_call_shows_its_payload(self, road: Road) -> None:
        assert SECRET not in repr(road.call(1, Does.TAKES))
