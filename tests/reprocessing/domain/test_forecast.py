"""How long a drain takes is said before it begins."""

from __future__ import annotations

import pytest

from reprocessing.domain.forecast import Forecast, in_words


@pytest.mark.parametrize(
    ("letters", "rate", "longest", "trip", "said"),
    [
        (1_000, 10.0, 1, 0.1, "about 100 seconds, by the target's rate"),
        (1_000, 10.0, 100, 30.0, "about 50 minutes, by its longest lane"),
        (1_000, None, 10, 0.05, "at most a second, by its longest lane"),
        (0, 10.0, 0, 1.0, "at most a second, by the target's rate"),
    ],
)
def test_the_slower_of_rate_and_longest_lane_counts(
    letters: int, rate: float | None, longest: int, trip: float, said: str
) -> None:
    assert str(Forecast.of(letters=letters, rate=rate, longest_lane=longest, round_trip=trip)) == said


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "at most a second"),
        (1.2, "about 2 seconds"),
        (119, "about 119 seconds"),
        (120, "about 2 minutes"),
        (7_199, "about 120 minutes"),
        (7_200, "about 2 hours"),
        (200_000, "about 2 days"),
        (10**9, "about 11,574 days"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
