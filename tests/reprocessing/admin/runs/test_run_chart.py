"""The chart of a run's rate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.admin.runs.run_chart import rate_chart
from reprocessing.domain.runs.rate_chart import MinuteCount

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(("minutes", "width"), [(1, 300), (6, 352), (12, 640), (40, 1_000), (600, 1_000)])
def test_chart_ends_with_its_newest_column(minutes: int, width: int) -> None:
    counts = [MinuteCount(START + timedelta(minutes=minute), 5) for minute in range(minutes)]
    chart = rate_chart(counts, now=None, allowed=None)
    assert chart
    assert chart.width == width
    last = chart.bars[-1]
    assert width == 300 or width - 48 <= last.x + last.width <= width
