"""Clocks that agree, are off, or are wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.domain.maintenance.findings import FindingSeverity, clock_finding


@pytest.mark.parametrize(
    ("ahead", "within", "grade"),
    [
        (0, 0, "well"),
        (5, 0, "well"),
        (6, 0, "warn"),
        (-6, 0, "warn"),
        (31, 0, "error"),
        (-31, 0, "error"),
        (31, 2, "warn"),
    ],
)
def test_a_clock_is_judged_by_how_far_it_is_off_at_least(ahead: float, within: float, grade: str) -> None:
    said = clock_finding("PostgreSQL against this machine", timedelta(seconds=ahead), timedelta(seconds=within))
    assert said.grade == FindingSeverity(grade)
    assert bool(said.cure) == (grade != "well")
