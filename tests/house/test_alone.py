"""What shares queues with whatever runs beside it is run alone."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_what_starts_workers_on_the_stack_s_own_queues_runs_alone() -> None:
    """Two fleets would take each other's hints; the proof's have servers of their own."""
    texts = {
        str(file.relative_to(TESTS)): file.read_text(encoding="utf-8")
        for file in TESTS.rglob("test_*.py")
        if TESTS / "proof" not in file.parents
    }
    fleet = re.compile(r"^from tests\.faults\.fleet import .*\b(Beat|Worker)\b", re.MULTILINE)
    starts = {name for name, text in texts.items() if fleet.search(text)}
    assert starts
    assert {name for name in starts if "pytest.mark.alone" not in texts[name]} == set()
