"""A value near its threshold does not open and close a condition again and again."""

from __future__ import annotations

import pytest

from reprocessing.domain.notifications.expiry import seconds_left
from reprocessing.domain.notifications.hysteresis import holds


@pytest.mark.parametrize(
    ("value", "is_open", "then"),
    [
        (100, False, False), (101, False, True), (100, True, True), (99, True, True), (75, True, True),
        (74, True, False), (0, True, False),
    ],
)  # fmt: skip
def test_a_condition_opens_above_its_threshold_and_closes_below_three_quarters_of_it(
    value: int, is_open: bool, then: bool
) -> None:
    assert holds(value, 100, is_open=is_open) is then


def test_messages_expire_soon_when_less_than_the_threshold_is_left() -> None:
    assert seconds_left(waited=299, retention=400, within=100) is None
    assert seconds_left(waited=300, retention=400, within=100) == 100
    assert seconds_left(waited=500, retention=400, within=100) == 0
