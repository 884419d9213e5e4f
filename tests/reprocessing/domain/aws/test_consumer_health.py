"""What a queue's metrics say about its consumers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reprocessing.domain.aws.consumer_health import (
    LEAST_VALUES,
    FailingConsumers,
    FallingBehind,
    KeepingUp,
    QueueMetrics,
    SlowOrCrashing,
    TooFewValues,
    judge_consumers,
)

MANY = some.integers(min_value=LEAST_VALUES, max_value=60)
VALUES = some.lists(some.floats(min_value=0, max_value=1e6), min_size=LEAST_VALUES, max_size=60)
FLAT = [0.0] * LEAST_VALUES
BUSY = {"sent": [10.0] * LEAST_VALUES, "received": [10.0] * LEAST_VALUES, "deleted": [10.0] * LEAST_VALUES}


def calm(**other: object) -> QueueMetrics:
    """Metrics of consumers that keep up, except for these."""
    return QueueMetrics(**({"age": FLAT, "in_flight": FLAT} | BUSY | other))  # type: ignore[arg-type]  # each by its name


def kinds(of: QueueMetrics) -> list[type]:
    return [type(one) for one in judge_consumers(of)]


@pytest.mark.soak
@given(n=MANY, start=some.floats(min_value=0, max_value=1e5), step=some.floats(min_value=60, max_value=1e4))
def test_an_age_that_grows_with_the_clock_means_behind(n: int, start: float, step: float) -> None:
    age = [start + step * place for place in range(n)]
    rises = (age[-1] - age[0]) * 0.5 > 0.25 * start + 60
    assert not rises or kinds(calm(age=age)) == [FallingBehind]


@pytest.mark.parametrize(
    ("series", "found"),
    [
        (calm(), KeepingUp()),
        (calm(in_flight=[0, 100, 200, 300, 400, 500], deleted=[5.0] * LEAST_VALUES), SlowOrCrashing(50, 450)),
        (
            calm(deleted=[4.0] * LEAST_VALUES),
            FailingConsumers(60, 60, 24),
        ),  # as much received as sent, and less deleted
        (calm(sent=FLAT, deleted=FLAT), FailingConsumers(0, 60, 0)),  # sent before, received, and none deleted
        (
            calm(in_flight=[36.0] * LEAST_VALUES, deleted=[4.0] * LEAST_VALUES),
            KeepingUp(),
        ),  # still in flight, so not missing
        (calm(age=[0, 900, 0, 900, 0, 900, 0, 900]), KeepingUp()),  # it swings
        (calm(age=[900, 0, 0, 0, 0, 900]), KeepingUp()),
    ],
)
def test_consumers_keep_up_or_are_slow_or_fail(series: QueueMetrics, found: object) -> None:
    assert judge_consumers(series) == (found,)


@given(values=VALUES)
def test_falling_values_are_never_growing(values: list[float]) -> None:
    falling = sorted(values, reverse=True)
    assert kinds(calm(age=falling, in_flight=falling)) == [KeepingUp]


@given(values=VALUES)
def test_no_series_grows_both_forwards_and_backwards(values: list[float]) -> None:
    assert not (kinds(calm(age=values)) == [FallingBehind] and kinds(calm(age=values[::-1])) == [FallingBehind])


@given(values=VALUES)
def test_failing_consumers_are_behind_exactly_if_their_age_grows(values: list[float]) -> None:
    failing = calm(age=values, deleted=FLAT)
    assert (FallingBehind in kinds(failing), FailingConsumers in kinds(failing)) == (
        FallingBehind in kinds(calm(age=values)),
        True,
    )


@given(few=some.lists(some.floats(min_value=0, max_value=1e6), max_size=LEAST_VALUES - 1))
def test_too_few_values_are_unknown(few: list[float]) -> None:
    assert kinds(QueueMetrics(age=few, in_flight=few)) == [TooFewValues]
    assert kinds(calm(age=few)) == [TooFewValues]
    why = "CloudWatch has too few values ({}), because the queue was hardly used lately"
    few_of_both = why.format("age of the oldest message and messages in flight")
    assert judge_consumers(QueueMetrics()) == (TooFewValues(few_of_both),)
    assert judge_consumers(calm(received=())) == (TooFewValues(why.format("received messages")),)
