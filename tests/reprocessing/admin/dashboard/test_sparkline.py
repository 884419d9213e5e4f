from __future__ import annotations

import pytest

from reprocessing.admin.dashboard.sparkline import Sparkline, sparkline
from reprocessing.store.dlqs.message_counts import Trend


def test_bars_are_captured_messages_and_the_line_is_delivered_ones() -> None:
    trend = Trend(1, [0, 1, 23], [100, 100, 50], [0, 0, 25], captured=250, delivered=25, failed=3)
    assert sparkline(trend) == Sparkline(
        "M0 12v-12h2v12M23 12v-6h1v6", "M0.5 12L22.5 12L23.5 9", "24 h: 250 captured, 25 delivered, 3 failed again"
    )


@pytest.mark.parametrize("counts", [[], [0]])
def test_nothing_is_drawn_without_messages(counts: list[int]) -> None:
    assert sparkline(Trend(1, list(range(len(counts))), counts, counts, 0, 0, 0)) is None


def test_small_count_is_seen_beside_a_large_one() -> None:
    drawn = sparkline(Trend(1, [3, 5], [1, 100_000], [0, 0], 100_001, 0, 0))
    assert drawn
    assert (drawn.captured, drawn.delivered) == ("M3 12v-1h1v1M5 12v-12h1v12", "")
