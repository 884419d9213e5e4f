"""The golden rule: what grows, what fails, and what nobody can tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reprocessing.domain.aws.consumer_health import LEAST, Behind, Failing, Keeping, Series, Slow, Untold, vitals

MANY = some.integers(min_value=LEAST, max_value=60)
VALUES = some.lists(some.floats(min_value=0, max_value=1e6), min_size=LEAST, max_size=60)
FLAT = [0.0] * LEAST
BUSY = {"sent": [10.0] * LEAST, "received": [10.0] * LEAST, "deleted": [10.0] * LEAST}


def calm(**other: object) -> Series:
    """A queue whose consumers keep up, but for these."""
    return Series(**({"age": FLAT, "in_flight": FLAT} | BUSY | other))  # type: ignore[arg-type]  # each by its name


def kinds(of: Series) -> list[type]:
    return [type(one) for one in vitals(of)]


def test_consumers_that_keep_up_are_well() -> None:
    assert vitals(calm()) == (Keeping(),)


@given(n=MANY, start=some.floats(min_value=0, max_value=1e5), step=some.floats(min_value=60, max_value=1e4))
def test_an_age_that_grows_with_the_clock_means_behind(n: int, start: float, step: float) -> None:
    age = [start + step * place for place in range(n)]
    rises = (age[-1] - age[0]) * 0.5 > 0.25 * start + 60
    assert not rises or kinds(calm(age=age)) == [Behind]


def test_messages_in_flight_that_grow_mean_slow_or_crashing() -> None:
    assert vitals(calm(in_flight=[0, 100, 200, 300, 400, 500], deleted=[5.0] * LEAST)) == (Slow(50, 450),)


def test_as_much_received_as_sent_and_less_deleted_means_failing() -> None:
    assert vitals(calm(deleted=[4.0] * LEAST)) == (Failing(60, 60, 24),)


def test_whoever_receives_what_was_sent_before_and_deletes_none_fails() -> None:
    assert vitals(calm(sent=FLAT, deleted=FLAT)) == (Failing(0, 60, 0),)


def test_what_is_still_in_flight_is_not_missing() -> None:
    assert vitals(calm(in_flight=[36.0] * LEAST, deleted=[4.0] * LEAST)) == (Keeping(),)


@given(values=VALUES)
def test_what_does_not_rise_is_never_called_growing(values: list[float]) -> None:
    falling = sorted(values, reverse=True)
    assert kinds(calm(age=falling, in_flight=falling)) == [Keeping]


@given(values=VALUES)
def test_no_series_grows_both_forwards_and_backwards(values: list[float]) -> None:
    assert not (kinds(calm(age=values)) == [Behind] and kinds(calm(age=values[::-1])) == [Behind])


@given(values=VALUES)
def test_whether_consumers_fail_changes_nothing_about_whether_they_are_behind(values: list[float]) -> None:
    failing = calm(age=values, deleted=FLAT)
    assert (Behind in kinds(failing), Failing in kinds(failing)) == (Behind in kinds(calm(age=values)), True)


@given(few=some.lists(some.floats(min_value=0, max_value=1e6), max_size=LEAST - 1))
def test_too_few_values_are_unknown_and_never_well(few: list[float]) -> None:
    assert kinds(Series(age=few, in_flight=few)) == [Untold]
    assert kinds(calm(age=few)) == [Untold]


@pytest.mark.parametrize("swing", [[0, 900, 0, 900, 0, 900, 0, 900], [900, 0, 0, 0, 0, 900]])
def test_what_swings_is_not_growing(swing: list[float]) -> None:
    assert vitals(calm(age=swing)) == (Keeping(),)
