"""What the demo sees of the brakes, in what the service says of them look after look."""

from __future__ import annotations

from typing import Any

import pytest

from redrive_service.sandbox.incident.observed_brakes import ObservedBrakes
from redrive_service.sandbox.judge import BreakerOpening

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
WAVES = ((1, 1), (2, 10), (3, 100), (4, None))


def told(
    *, wave: tuple[int, int | None] | None = None, state: str = "closed", since: int = 0, rate: float = 20,
    quarantined: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """What the service says, `since` seconds after noon."""
    breaker = {"state": state, "since": f"2026-01-01T12:00:{since:02}Z", "why": "of rain"}
    ramp = {"allowed_rate": rate, "rate": 200.0, "ramp_reason": "as it goes"}
    return {
        "runs": [{"wave": wave and {"no": wave[0], "size": wave[1], "sent": 0}}],
        "targets": [{"breakers": [{**breaker, **ramp}]}],
        "parked": {"quarantined": quarantined} if quarantined else {},
    }


def seen(brakes: ObservedBrakes, *looks: dict[str, Any]) -> list[str]:
    return [sentence for look in looks for sentence in brakes.look(look)]


def test_what_is_new_is_said_once() -> None:
    brakes = ObservedBrakes()
    looks = told(wave=(1, 1)), told(wave=(1, 1)), told(wave=(2, 10), rate=40), told(wave=(2, 10), rate=40)
    assert seen(brakes, *looks) == [
        "wave: 1 message may be sent; all others wait for its outcome.",
        "ramp: 20 of 200 messages/s are allowed now (as it goes).",
        "wave: the wave before has ended; now 10 messages may be sent.",
        "ramp: 40 of 200 messages/s are allowed now (as it goes).",
    ]


def test_the_breakers_way_is_followed_from_its_opening_to_its_closing() -> None:
    brakes = ObservedBrakes()
    seen(brakes, told(), told(state="open", since=10))
    assert (brakes.openings, brakes.failed, brakes.is_open) == ((BreakerOpening(opened=NOON + 10),), 0, True)
    seen(brakes, told(state="half_open", since=13), told(state="open", since=15))
    assert brakes.failed == 1
    seen(brakes, told(state="half_open", since=21), told(state="half_open", since=21), told(since=25))
    assert (brakes.openings, brakes.failed, brakes.is_open) == (
        (BreakerOpening(opened=NOON + 10, closed=NOON + 25),),
        1,
        False,
    )


def test_an_opening_that_was_not_looked_at_counts_from_its_canary() -> None:
    brakes = ObservedBrakes()
    seen(brakes, told(), told(state="half_open", since=13), told(since=25))
    assert brakes.openings == (BreakerOpening(opened=NOON + 13, closed=NOON + 25),)


def test_waves_that_begin_anew_when_nothing_is_left_are_no_news() -> None:
    brakes = ObservedBrakes()
    seen(brakes, *(told(wave=wave) for wave in (*WAVES, (5, 1), (6, 10))))
    assert brakes.waves == [1, 10, 100, None]


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        ("nothing", []),
        ("waves", ["waves of 1, 10, 100 and all"]),
        ("ramp", ["a ramp that rises"]),
        ("rule", ["a rule that quarantines"]),
        ("breaker", ["a breaker that opens, and closes by itself"]),
    ],
)
def test_what_was_not_seen_at_work_is_missing(left_out: str, missing: list[str]) -> None:
    looks = {
        "waves": [told(wave=wave) for wave in ((1, 1), (2, 1), (3, 10), (4, 100), (5, None))],  # one was repeated
        "ramp": [told(rate=10), told(rate=20)],
        "rule": [told(quarantined=3, rate=20)],
        "breaker": [told(state="open", since=10, rate=0), told(state="half_open", since=13, rate=0), told(since=20)],
    }
    brakes = ObservedBrakes()
    for name, some in looks.items():
        if name != left_out:
            seen(brakes, *some)
    assert brakes.missing() == missing


def test_a_ramp_that_only_falls_and_a_breaker_that_stays_open_are_not_enough() -> None:
    brakes = ObservedBrakes()
    seen(brakes, told(rate=40), told(rate=20), told(state="open", since=10), told(state="half_open", since=13))
    assert brakes.missing()[1:] == [
        "a ramp that rises", "a rule that quarantines", "a breaker that opens, and closes by itself",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("waves", "well"),
    [
        (((2, 10), (3, 100), (4, None)), True),  # those left out began and ended between two looks
        (((3, 100), (4, None)), True),
        (((2, 10), (3, 1), (4, 100), (5, None)), False),
        (((1, 1), (2, 10), (3, 100)), False),
        (((4, None),), True),
        (((3, None),), False),  # there were only two before it
        ((), False),
    ],
)
def test_waves_are_seen_in_their_order_up_to_the_last_one(
    waves: tuple[tuple[int, int | None], ...], well: bool
) -> None:
    brakes = ObservedBrakes()
    seen(brakes, *(told(wave=wave) for wave in waves))
    assert ("waves of 1, 10, 100 and all" not in brakes.missing()) is well
