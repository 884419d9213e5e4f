"""The backoff doubles with each failure, up to the cap."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.replay.backoff import Backoff

MINUTE, CAP = timedelta(minutes=1), timedelta(hours=6)


@pytest.mark.parametrize(
    ("failures", "minutes"), [(0, 1), (1, 2), (2, 4), (8, 256), (9, 360), (64, 360), (10_000, 360)]
)
def test_without_jitter_it_doubles_up_to_the_cap(failures: int, minutes: int) -> None:
    assert Backoff(MINUTE, CAP, "none").delay(failures, 0.1) == timedelta(minutes=minutes)


def test_full_jitter_multiplies_the_delay_by_the_chance() -> None:
    backoff = Backoff(MINUTE, CAP)
    assert [backoff.delay(2, chance) for chance in (0.0, 0.25, 0.5)] == [timedelta(minutes=part) for part in (0, 1, 2)]


def test_a_base_or_a_cap_of_zero_means_no_delay() -> None:
    assert Backoff(timedelta(0), CAP, "none").delay(5, 0.5) == timedelta(0)
    assert Backoff(MINUTE, timedelta(0), "none").delay(5, 0.5) == timedelta(0)


durations = st.timedeltas(min_value=timedelta(0), max_value=timedelta.max)


@given(durations, durations, st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_the_delay_never_overflows_or_exceeds_the_cap(
    base: timedelta, cap: timedelta, failures: int, chance: float
) -> None:
    assert timedelta(0) <= Backoff(base, cap).delay(failures, chance) <= cap
    assert Backoff(base, cap, "none").delay(failures, chance) <= cap
