"""When a run ends, and the basis of that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reprocessing.domain.runs.expected_end import ExpectedEnd, expected_end

NOW = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("allowed", "measured", "forecast", "end"),
    [
        (10.0, 9.0, 120.0, ExpectedEnd(120.0, "by rate limits, ramp-up and the order of each key, if nothing fails")),
        (10.0, 5.0, 120.0, ExpectedEnd(180.0, "at the measured 5 messages/s (allowed: 10 messages/s)")),
        (10.0, 5.0, 400.0, ExpectedEnd(400.0, "at the measured 5 messages/s (allowed: 10 messages/s)")),
        (10.0, 0.0, None, ExpectedEnd(90.0, "at the allowed 10 messages/s, if nothing fails")),
        (None, 3.0, None, ExpectedEnd(300.0, "at the measured 3 messages/s")),
        (None, 0.0, None, None),
        (0.0, 0.0, None, None),
    ],
    ids=["forecast", "slower", "slower_and_ordered", "allowed", "unlimited", "unknown", "not_closed"],
)
def test_the_end_has_a_basis(
    allowed: float | None, measured: float, forecast: float | None, end: ExpectedEnd | None
) -> None:
    assert expected_end(900, allowed=allowed, measured=measured, forecast=forecast) == end


def test_the_end_is_told_in_utc_with_the_day_if_it_is_another_one() -> None:
    assert ExpectedEnd(90.0, "as planned").sentence(NOW) == "ends at 23:01:30 UTC, in about 90 seconds, as planned"
    told = ExpectedEnd(7_200.0, "as planned").sentence(NOW)
    assert told == "ends at 2026-03-02 01:00:00 UTC, in about 2 hours, as planned"
