"""Clocks that agree, are off, or are wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reprocessing.domain.maintenance import findings
from reprocessing.domain.maintenance.findings import DoctorFinding, FindingSeverity, clock_finding


@pytest.mark.parametrize(
    ("ahead", "within", "severity"),
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
def test_a_clock_is_judged_by_how_far_it_is_off_at_least(ahead: float, within: float, severity: str) -> None:
    said = clock_finding("PostgreSQL against this machine", timedelta(seconds=ahead), timedelta(seconds=within))
    assert said.severity == FindingSeverity(severity)
    assert bool(said.cure) == (severity != "well")


def test_a_clock_that_is_off_is_told_with_its_cure() -> None:
    said = clock_finding("PostgreSQL", timedelta(seconds=-1_031), timedelta(0))
    assert (said.where, said.what, said.why, said.cure) == (
        "PostgreSQL", "1,031.0 s behind.",
        "Leases, due times, the expiry of messages in SQS, and signatures depend on the clocks.",
        "Synchronise both machines' clocks (see chronyc tracking or timedatectl). Then run: manage.py redrive_doctor",
    )  # fmt: skip
    assert clock_finding("PostgreSQL", timedelta(seconds=6), timedelta(0)).what == "6.0 s ahead."
    agree = findings.ok_finding("PostgreSQL", "the clocks agree.")
    assert clock_finding("PostgreSQL", timedelta(0), timedelta(9)) == agree


def test_a_finding_of_each_severity() -> None:
    told = DoctorFinding(FindingSeverity.ERROR, "a", "b", "c", "d")
    assert findings.error_finding("a", "b", "c", "d") == told
    assert findings.warning_finding("a", "b", "c", "d") == replace(told, severity=FindingSeverity.WARN)
    assert findings.unknown_finding("a", "b", "c", "d") == replace(told, severity=FindingSeverity.UNKNOWN)
    assert findings.note_finding("a", "b", "d") == replace(told, severity=FindingSeverity.NOTE, why="")
    assert findings.ok_finding("a", "b") == DoctorFinding(FindingSeverity.WELL, "a", "b")
