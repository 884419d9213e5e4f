"""A bucket never gives more than rate and burst in a second, even if tokens are used late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.safety.token_bucket import LONGEST_WAIT, TOKEN_LIFE, Bucket, capacity

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("rate", "burst", "most"), [(10, None, 7.5), (200, 50, 1.0), (200, 200, 150.0), (0.2, None, 1.0), (4, 0, 1.0)]
)
def test_the_life_of_tokens_is_taken_off_the_burst(rate: float, burst: float | None, most: float) -> None:
    assert capacity(rate, burst) == most


@pytest.mark.soak
@given(
    st.lists(st.tuples(st.integers(0, SECOND // 2), st.integers(0, 500)), min_size=1, max_size=60),
    st.sampled_from([0.2, 7.0, 100.0]),
    st.sampled_from([None, 30.0, 300.0]),
)
def test_no_second_sees_more_than_rate_and_burst_even_if_tokens_are_used_late(
    steps: list[tuple[int, int]], rate: float, burst: float | None
) -> None:
    most = capacity(rate, burst)
    now, bucket = 0, Bucket(most, 0, rate, most)
    grants: list[tuple[int, int]] = []
    for passed, wanted in steps:
        now += passed
        bucket, count = bucket.filled(now, rate, most).take(wanted)
        grants.append((now, count))
    allowed = rate + max(rate if burst is None else burst, 1 + rate * TOKEN_LIFE)
    span = SECOND + int(TOKEN_LIFE * SECOND)
    worst = max(sum(count for at, count in grants if start <= at < start + span) for start, _ in grants)
    assert worst <= allowed + 1e-6


def test_a_cold_bucket_is_empty_and_fills() -> None:
    cold = Bucket.cold(0, 2.0, 5.0)
    assert cold.take(1)[1] == 0
    assert [cold.filled(SECOND * seconds, 2.0, 5.0).tokens for seconds in (1, 2, 60)] == [2.0, 4.0, 5.0]


def test_a_clock_that_goes_back_adds_and_removes_no_tokens() -> None:
    assert Bucket(3.0, 10 * SECOND, 1.0, 5.0).filled(0, 1.0, 5.0) == Bucket(3.0, 0, 1.0, 5.0)


def test_a_changed_rate_applies_from_now_on() -> None:
    slow = Bucket(0.0, 0, 1.0, 5.0)
    assert slow.filled(SECOND, 100.0, 75.0).tokens == 1.0
    assert slow.filled(60 * SECOND, 100.0, 75.0).tokens == 5.0
    assert Bucket(75.0, 0, 100.0, 75.0).filled(SECOND, 1.0, 5.0).tokens == 5.0


@pytest.mark.parametrize(
    ("tokens", "rate", "wanted", "seconds"),
    [
        (0.0, 0.2, 10, 5.0),
        (0.5, 1.0, 1, 0.5),
        (0.0, 100.0, 5, 0.05),
        (0.0, 100.0, 50, LONGEST_WAIT),
        (2.0, 1.0, 1, 0.0),
    ],
)
def test_the_wait_is_for_one_token_and_for_many_that_come_soon(
    tokens: float, rate: float, wanted: int, seconds: float
) -> None:
    assert Bucket(tokens, 0, rate, 75.0).wait(wanted) == pytest.approx(seconds)
