"""When a circuit breaker opens, counted in the order of sending, and how canaries close it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reprocessing.domain.safety.circuit_breaker import (
    WINDOW,
    CloseBreaker,
    NextCanary,
    OpenBreaker,
    Policy,
    after_canary,
    why_breaker_opens,
)

POLICY = Policy(threshold=5, ratio=0.5, at_least=20, cooldown=30.0, cooldown_cap=600.0, canaries_to_close=3)
SENDS = st.lists(st.sampled_from([True, False, None]), max_size=250)
ILL: list[bool | None] = [True]
WELL: list[bool | None] = [False]
OPEN: list[bool | None] = [None]


def row(sends: list[bool | None]) -> int:
    """Return the longest row of failures, computed in another way."""
    words = "".join("x" if failed else "." for failed in sends).split(".")
    return max(len(word) for word in words)


def test_the_threshold_in_a_row_opens_it() -> None:
    assert why_breaker_opens(POLICY, ILL * 4) is None
    assert why_breaker_opens(POLICY, ILL * 5) == "5 messages in a row failed"
    assert why_breaker_opens(replace(POLICY, threshold=1), ILL) == "a message failed"
    assert why_breaker_opens(replace(POLICY, threshold=2), ILL * 2) == "2 messages in a row failed"


@pytest.mark.parametrize("between", [WELL, OPEN])
def test_a_send_that_did_not_fail_ends_a_row(between: list[bool | None]) -> None:
    assert why_breaker_opens(POLICY, ILL * 4 + between + ILL * 4) is None


def test_a_row_that_is_completed_later_opens_the_breaker() -> None:
    sends = [*ILL * 2, None, *ILL * 2, *WELL * 30]
    assert why_breaker_opens(POLICY, sends) is None
    sends[2] = True
    assert why_breaker_opens(POLICY, sends) == "5 messages in a row failed"


@pytest.mark.parametrize(
    ("sends", "why"),
    [
        ((WELL + ILL) * 9 + ILL, None),  # fewer than 20
        ((WELL + ILL) * 10, "10 of 20 messages failed (50%)"),
        ((WELL + ILL) * 10 + OPEN * 900, "10 of 20 messages failed (50%)"),  # sent after the newest failure
        (OPEN * 11 + (WELL + ILL) * 10, None),  # unsettled ones have not failed
        (ILL * 40 + OPEN * (WINDOW - 1) + ILL, None),  # sent long before
    ],
)
def test_the_ratio_counts_a_window_of_sends_up_to_the_newest_failure(sends: list[bool | None], why: str | None) -> None:
    assert why_breaker_opens(POLICY, sends) == why


def test_a_window_is_as_long_as_the_threshold() -> None:
    assert why_breaker_opens(replace(POLICY, threshold=150), WELL * 900 + ILL * 150) == "150 messages in a row failed"


@pytest.mark.soak
@given(st.sets(st.integers(0, 2_999), min_size=5, max_size=5), st.sampled_from([False, None]))
def test_five_failures_among_thousands_open_the_breaker_only_in_a_row(places: set[int], rest: bool | None) -> None:
    sends: list[bool | None] = [place in places or rest for place in range(3_000)]
    in_a_row = max(places) - min(places) == 4
    assert (why_breaker_opens(POLICY, sends) is not None) == in_a_row


@given(SENDS)
def test_without_a_row_and_below_the_ratio_the_breaker_stays_closed(sends: list[bool | None]) -> None:
    why = why_breaker_opens(POLICY, sends)
    while sends and not sends[-1]:
        sends = sends[:-1]
    counted = sends[-WINDOW:]
    ratio = counted.count(True) / len(counted) if len(counted) >= POLICY.at_least else 0.0
    assert (why is not None) == (row(counted) >= POLICY.threshold or ratio >= POLICY.ratio)


@given(SENDS)
def test_a_success_opens_nothing(sends: list[bool | None]) -> None:
    assume(None in sends and why_breaker_opens(POLICY, sends) is None)
    sends[sends.index(None)] = False
    assert why_breaker_opens(POLICY, sends) is None


def test_a_canary_that_went_well_lets_the_next_one_go_until_there_are_enough() -> None:
    assert after_canary(POLICY, failed=False, successes=0, last_cooldown=30) == NextCanary(1)
    assert after_canary(POLICY, failed=False, successes=1, last_cooldown=30) == NextCanary(2)
    assert after_canary(POLICY, failed=False, successes=2, last_cooldown=30) == CloseBreaker("3 canaries succeeded")
    only = replace(POLICY, canaries_to_close=1)
    assert after_canary(only, failed=False, successes=0, last_cooldown=30) == CloseBreaker("the canary succeeded")


@pytest.mark.parametrize(
    ("failed", "step"), [(None, NextCanary(2)), (True, OpenBreaker(60, "the canary failed after a cooldown of 30 s"))]
)
def test_a_failed_canary_doubles_the_cooldown_and_one_without_result_changes_nothing(
    failed: bool | None, step: object
) -> None:
    assert after_canary(POLICY, failed, successes=2, last_cooldown=30) == step


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.integers(1, 60))
def test_the_rest_grows_to_its_cap_and_never_beyond(cooldown: float, cap: float, canaries: int) -> None:
    assume(cooldown <= cap)
    policy, last_cooldown = replace(POLICY, cooldown=cooldown, cooldown_cap=cap), cooldown
    for _ in range(canaries):
        step = after_canary(policy, failed=True, successes=0, last_cooldown=last_cooldown)
        assert isinstance(step, OpenBreaker)
        assert last_cooldown <= step.cooldown <= cap
        assert step.cooldown in {2 * last_cooldown, cap}
        last_cooldown = step.cooldown
