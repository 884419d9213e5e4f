"""The rate rises while failures stay flat, else falls, and stays within its bounds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.safety.circuit_breaker import Sends
from reprocessing.domain.safety.rate_ramp import FLAT_RISE, Ramp, RampStep, next_step, restart_ramp

SENDS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=150)
SHARES = st.floats(0.001, 1)


def walked(ramp: Ramp, *sends: Sends) -> list[RampStep]:
    """Return the paces of a ramp that takes a step after each of these."""
    paces = []
    for settled in sends:
        pace = next_step(ramp, settled)
        assert pace is not None
        ramp = Ramp(start=ramp.start, share=pace.share, failure_ratio=pace.failure_ratio)
        paces.append(pace)
    return paces


def test_the_rate_rises_from_a_tenth_to_the_whole_in_four_steps() -> None:
    paces = walked(Ramp(start=0.1, share=0.1, failure_ratio=0.0), *[[False] * 20] * 5)
    assert [pace.share for pace in paces] == [0.2, 0.4, 0.8, 1.0, 1.0]
    rises, whole = "the rate rises: 0 of 20 messages failed", "the full rate is allowed: 0 of 20 messages failed"
    assert [pace.why for pace in paces] == [rises, rises, rises, whole, whole]


def test_more_failures_than_before_halve_the_rate() -> None:
    ramp = Ramp(start=0.1, share=0.8, failure_ratio=0.1)
    assert next_step(ramp, [True] * 4 + [False] * 16) == RampStep(
        0.4, 0.2, "slower now: 4 of 20 messages failed; 10 % failed before"
    )
    assert next_step(ramp, [True] * 3 + [False] * 17) == RampStep(
        1.0, 0.15, "the full rate is allowed: 3 of 20 messages failed"
    )


@pytest.mark.parametrize(
    ("sends", "pace"),
    [
        ([], None),
        ([None] * 30, None),
        (
            [None] * 8 + [True] * 2 + [None] * 500,
            RampStep(0.2, 0.2, "slower now: 2 of 10 messages failed; 0 % failed before"),
        ),
        ([True] * 50 + [False] * 100, RampStep(0.8, 0.0, "the rate rises: 0 of 100 messages failed")),
        ([False] * 10 + [True], RampStep(0.4, 0.0, "the rate stays: 1 of 11 messages failed")),
    ],
)
def test_the_last_hundred_sends_up_to_the_newest_settled_one_count(
    sends: list[bool | None], pace: RampStep | None
) -> None:
    assert next_step(Ramp(start=0.1, share=0.4, failure_ratio=0.0), sends) == pace


@given(SHARES, st.floats(0, 1), st.floats(0, 1), SENDS)
def test_the_share_stays_within_its_bounds_rises_while_flat_and_falls_otherwise(
    start: float, above: float, failure_ratio: float, sends: list[bool | None]
) -> None:
    share = start + (1 - start) * above
    pace = next_step(Ramp(start=start, share=share, failure_ratio=failure_ratio), sends)
    if pace is None:
        assert set(sends) == {None}
        return
    assert start <= pace.share <= 1
    if pace.why.startswith("the rate stays"):
        assert (pace.share, pace.failure_ratio) == (share, failure_ratio)
    elif pace.failure_ratio <= failure_ratio + FLAT_RISE:
        assert pace.share > share or pace.share == share == 1
    else:
        assert pace.share < share or pace.share == share == start


@given(SHARES, SHARES)
def test_a_changed_start_is_applied_with_the_next_step(start: float, share: float) -> None:
    for sends in ([False], [True]):
        (pace,) = walked(Ramp(start=start, share=share, failure_ratio=0.0), sends)
        assert start <= pace.share <= 1


@given(SHARES)
def test_every_start_reaches_the_whole_rate_in_ten_steps(start: float) -> None:
    paces = walked(Ramp(start=start, share=start, failure_ratio=0.0), *[[False]] * 10)
    shares = [start, *(pace.share for pace in paces)]
    assert all(one < other or other == 1 for one, other in pairwise(shares))
    assert shares[-1] == 1


def test_a_new_ramp_knows_nothing_of_before() -> None:
    assert restart_ramp(Ramp(start=0.2, share=1.0, failure_ratio=0.4), "why") == RampStep(0.2, 0.0, "why")
