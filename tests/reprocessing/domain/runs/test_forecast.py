"""The forecast of a drain's duration."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from reprocessing.domain.runs.forecast import (
    Forecast,
    RateClimb,
    duration_in_words,
    measured_rate_in_words,
    next_multiple,
    rate_in_words,
    seconds_to_send,
)
from reprocessing.domain.safety import rate_ramp, wave_progression
from reprocessing.domain.safety.rate_ramp import Ramp


@pytest.mark.parametrize(
    ("letters", "rate", "longest", "trip", "said"),
    [
        (1_000, 10.0, 1, 0.1, "about 100 seconds, limited by the target's rate"),
        (1_000, 10.0, 100, 30.0, "about 50 minutes, limited by the longest key queue"),
        (1_000, None, 10, 0.05, "at most a second, limited by the longest key queue"),
        (0, 10.0, 0, 1.0, "at most a second, limited by the target's rate"),
    ],
)
def test_the_slower_of_rate_and_longest_lane_is_the_forecast(
    letters: int, rate: float | None, longest: int, trip: float, said: str
) -> None:
    assert str(Forecast.of(letters=letters, rate=rate, longest_lane=longest, round_trip=trip)) == said


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "at most a second"), (1.2, "about 2 seconds"), (119, "about 119 seconds"), (120, "about 2 minutes"),
        (7_199, "about 120 minutes"), (7_200, "about 2 hours"), (200_000, "about 2 days"),
        (10**9, "about 11,574 days"),
    ],
)  # fmt: skip
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words


def _simulated(letters: int, rate: float, start: float, every: int, first: int) -> float:
    """Simulate a ramp without failures in ticks of 0.01 s, until the last letter was sent."""
    now, gone, steps, ramped = 0, 0.0, 0, Ramp(start=start, share=start, failure_ratio=0.0)
    while gone < letters - 1e-9:
        if now == first + steps * every:
            pace = rate_ramp.next_step(ramped, [False] * 20)
            assert pace
            ramped, steps = Ramp(start=start, share=pace.share, failure_ratio=pace.failure_ratio), steps + 1
        gone += rate * ramped.share / 100
        now += 1
    return now / 100


@pytest.mark.soak
@given(
    letters=some.integers(1, 500), rate=some.floats(1, 50), start=some.floats(0.05, 1), every=some.integers(10, 400),
    wait=some.integers(0, 400),
)  # fmt: skip
def test_letters_take_as_long_as_a_simulated_ramp_without_failures(
    letters: int, rate: float, start: float, every: int, wait: int
) -> None:
    climb = RateClimb(share=start, every=every / 100, first=(every + wait) / 100)
    taken = _simulated(letters, rate, start, every, every + wait)
    assert taken - 0.0101 <= seconds_to_send(letters, rate, climb) <= taken + 1e-6


@given(steps=some.integers(0, 8), letters=some.integers(1, 10**6), start=some.floats(0.001, 1))
@example(steps=0, letters=70, start=0.9999999999999999)
def test_a_ramp_that_has_climbed_is_never_slower(steps: int, letters: int, start: float) -> None:
    climb = RateClimb(share=start, every=10, first=10)
    later, now = seconds_to_send(letters, 7, climb.after(steps)), seconds_to_send(letters, 7, climb)
    # Sums of floats: each bound holds up to a relative error of 1e-9.
    assert letters / 7 * (1 - 1e-9) <= later <= now * (1 + 1e-9)


def test_the_smallest_share_ends_in_finite_time() -> None:
    assert math.isfinite(seconds_to_send(10**9, 10, RateClimb(share=5e-324, every=10, first=10)))


@pytest.mark.parametrize(
    ("letters", "waves"), [(0, 0), (1, 0), (2, 1), (11, 1), (12, 2), (111, 2), (112, 3), (10**6, 3)]
)
def test_the_waves_before_the_last_letter_are_counted(letters: int, waves: int) -> None:
    assert wave_progression.waves_before_last(letters) == waves


@given(seconds=some.floats(0, 10**6), every=some.floats(1, 10**5))
@example(seconds=0.9999999999999999, every=1.0)
def test_the_next_turn_is_the_first_that_begins_later(seconds: float, every: float) -> None:
    turn = next_multiple(seconds, every)
    assert seconds < turn <= (seconds + every) * (1 + 1e-9)
    assert turn / every == pytest.approx(round(turn / every))


def test_with_continuous_turns_the_next_one_is_due_at_once() -> None:
    assert next_multiple(61.5, 0) == 61.5


def test_the_first_letter_of_a_lane_may_have_a_shorter_round_trip() -> None:
    found = Forecast.of(letters=3, rate=None, longest_lane=3, round_trip=120, first=70)
    assert (found.by_lane, Forecast.of(letters=0, rate=1, longest_lane=0, round_trip=120, first=70).by_lane) == (310, 0)


def test_when_only_so_many_letters_may_wait_for_outcomes_each_group_waits_for_those_of_the_one_before() -> None:
    found = [
        Forecast.of(letters=letters, rate=50.0, longest_lane=1, round_trip=0, room=1_000, outcome_in=120)
        for letters in (0, 1_000, 1_001, 100_000)
    ]
    assert [forecast.by_outcomes for forecast in found] == [0, 0, 120, 99 * 120]
    assert [forecast.bound for forecast in found] == ["rate", "rate", "outcomes", "outcomes"]
    assert str(found[-1]) == "about 3 hours, limited by the wait for outcomes"
    assert Forecast.of(letters=9, rate=None, longest_lane=1, round_trip=0, outcome_in=120).by_outcomes == 0
    waves = Forecast.of(letters=1_001, rate=50.0, longest_lane=1, round_trip=0, room=1_000, outcome_in=120, waits=60)
    assert (waves.by_outcomes, waves.without_lanes) == (180, 180)


def test_a_forecast_includes_the_climb_and_the_waits_of_waves() -> None:
    climb = RateClimb(share=0.5, every=10, first=10)
    found = Forecast.of(letters=150, rate=10.0, longest_lane=1, round_trip=0, climb=climb, waits=60)
    assert (found.by_rate, found.bound) == (60 + 10 + 10, "rate")


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (1.0, "1 message/s"), (1 / 30, "0.0333 messages/s"), (12.345, "12.3 messages/s"), (999.4, "999 messages/s"),
        (1_234.5, "1,234 messages/s"), (0.0, "0 messages/s"),
    ],
)  # fmt: skip
def test_a_rate_is_told_with_three_digits(rate: float, words: str) -> None:
    assert rate_in_words(rate) == words


def test_a_rate_that_a_person_set_is_told_as_it_is() -> None:
    assert rate_in_words(12.345, digits=12) == "12.345 messages/s"


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.0, "0 messages/s"),
        (0.001, "less than 1 message/min"),
        (1 / 60, "1 message/min"),
        (0.099, "6 messages/min"),
        (0.1, "0.1 messages/s"),
        (12.34, "12.3 messages/s"),
    ],
)
def test_a_slow_measured_rate_is_given_per_minute(rate: float, words: str) -> None:
    assert measured_rate_in_words(rate) == words
