"""The columns of the chart of a run's rate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reprocessing.domain.runs.rate_chart import COLUMNS, MinuteCount, RateColumn, rate_columns

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def _minutes(**sent: int) -> list[MinuteCount]:
    return [MinuteCount(START + timedelta(minutes=int(minute[1:])), n) for minute, n in sent.items()]


def test_each_minute_is_a_column_and_a_minute_without_sends_is_empty() -> None:
    assert rate_columns(_minutes(m0=5, m2=7), now=None) == [
        RateColumn(START, 1, 5), RateColumn(START + timedelta(minutes=1), 1, 0),
        RateColumn(START + timedelta(minutes=2), 1, 7),
    ]  # fmt: skip


def test_the_chart_of_a_running_run_ends_now() -> None:
    now = START + timedelta(minutes=3, seconds=20)
    assert [column.sent for column in rate_columns(_minutes(m0=5), now=now)] == [5, 0, 0, 0]


def test_a_long_run_has_columns_of_several_minutes_and_the_last_may_be_shorter() -> None:
    found = rate_columns(_minutes(m0=4, m1=6, m3=1, m120=8), now=None)
    assert (len(found), found[0], found[-1]) == (
        25, RateColumn(START, 5, 11), RateColumn(START + timedelta(minutes=120), 1, 8),
    )  # fmt: skip
    assert (found[0].rate, found[-1].rate) == (2.2, 8.0)


def test_the_chart_shows_the_last_day_in_at_most_sixty_columns() -> None:
    counts = [MinuteCount(START + timedelta(minutes=minute), 1) for minute in range(3_000)]
    found = rate_columns(counts, now=None)
    assert (len(found) <= COLUMNS, sum(column.sent for column in found)) == (True, 1_440)


def test_a_run_that_sent_nothing_has_no_chart() -> None:
    assert rate_columns([], now=START) == []
