"""A ramp climbs while failures stay flat, and falls when they do not; it never leaves its bounds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.safety.rate_ramp import FLAT, Pace, Ramp, anew, step

SENDS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=150)
SHARES = st.floats(0.001, 1)


def test_from_a_tenth_to_the_whole_rate_in_four_steps() -> None:
    shares, ramp = [], Ramp(start=0.1, share=0.1, ill=0.0)
    for _ in range(5):
        pace = step(ramp, [False] * 20)
        assert pace is not None
        ramp = Ramp(start=0.1, share=pace.share, ill=pace.ill)
        shares.append((pace.share, pace.why))
    assert shares == [
        (0.2, "the rate rises: 0 of 20 letters failed"),
        (0.4, "the rate rises: 0 of 20 letters failed"),
        (0.8, "the rate rises: 0 of 20 letters failed"),
        (1.0, "the whole rate: 0 of 20 letters failed"),
        (1.0, "the whole rate: 0 of 20 letters failed"),
    ]


def test_more_failures_than_before_halve_it() -> None:
    ramp = Ramp(start=0.1, share=0.8, ill=0.1)
    assert step(ramp, [True] * 4 + [False] * 16) == Pace(0.4, 0.2, "the rate falls: 4 of 20 letters failed, 10% before")
    assert step(ramp, [True] * 3 + [False] * 17) == Pace(1.0, 0.15, "the whole rate: 3 of 20 letters failed")


@pytest.mark.parametrize("sends", [[], [None], [None] * 30])
def test_without_anything_settled_there_is_no_step(sends: list[bool | None]) -> None:
    assert step(Ramp(start=0.1, share=0.4, ill=0.0), sends) is None


def test_unsettled_letters_count_up_to_the_newest_settled_one() -> None:
    pace = step(Ramp(start=0.1, share=0.4, ill=0.0), [None] * 8 + [True] * 2 + [None] * 500)
    assert pace == Pace(0.2, 0.2, "the rate falls: 2 of 10 letters failed, 0% before")


def test_the_last_hundred_letters_count() -> None:
    pace = step(Ramp(start=0.1, share=0.4, ill=0.0), [True] * 50 + [False] * 100)
    assert pace == Pace(0.8, 0.0, "the rate rises: 0 of 100 letters failed")


@given(SHARES, st.floats(0, 1), st.floats(0, 1), SENDS)
def test_it_stays_within_its_bounds_rises_while_flat_and_falls_otherwise(
    start: float, above: float, ill: float, sends: list[bool | None]
) -> None:
    share = start + (1 - start) * above
    pace = step(Ramp(start=start, share=share, ill=ill), sends)
    if pace is None:
        assert set(sends) == {None}
        return
    assert start <= pace.share <= 1
    if pace.why.startswith("as before"):
        assert (pace.share, pace.ill) == (share, ill)
    elif pace.ill <= ill + FLAT:
        assert pace.share > share or pace.share == share == 1
    else:
        assert pace.share < share or pace.share == share == start


def test_one_failure_alone_neither_raises_nor_lowers_it() -> None:
    pace = step(Ramp(start=0.1, share=0.4, ill=0.0), [False] * 10 + [True])
    assert pace == Pace(0.4, 0.0, "as before: 1 of 11 letters failed")


@given(SHARES, SHARES)
def test_a_changed_start_takes_hold_with_the_next_step(start: float, share: float) -> None:
    for sends in ([False], [True]):
        pace = step(Ramp(start=start, share=share, ill=0.0), sends)
        assert pace is not None
        assert start <= pace.share <= 1


@given(SHARES)
def test_however_low_it_starts_it_arrives(start: float) -> None:
    ramp, shares = Ramp(start=start, share=start, ill=0.0), [start]
    while ramp.share < 1:
        pace = step(ramp, [False])
        assert pace is not None
        ramp = Ramp(start=start, share=pace.share, ill=pace.ill)
        shares.append(ramp.share)
    assert all(one < other for one, other in pairwise(shares))
    assert len(shares) <= 11


def test_anew_knows_nothing_of_before() -> None:
    assert anew(Ramp(start=0.2, share=1.0, ill=0.4), "why") == Pace(0.2, 0.0, "why")
