"""docs/outcomes.md: its example is accepted, and its tables leave nothing out."""

from __future__ import annotations

import json
import re
from pathlib import Path

from reprocessing.domain.outcomes.consumer_report import VERDICTS, ConsumerReport, read
from reprocessing.domain.outcomes.delivery_status import OutcomeSource
from reprocessing.models.target import Proof

MANUAL = (Path(__file__).parents[2] / "docs" / "outcomes.md").read_text()


def _first_cells(heading: str) -> set[str]:
    """The names in the first column of the table whose head begins so."""
    _, _, table = MANUAL.partition(heading)
    rows = [row for row in table.split("\n\n")[0].splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_example_call_is_heard() -> None:
    _, _, example = MANUAL.partition("-d '")
    body = example.partition("]}'")[0] + "]}"
    said = [read(one) for one in json.loads(body.replace("'\\''", "'"))["reports"]]
    assert [isinstance(one, ConsumerReport) for one in said] == [True, True]


def test_its_tables_leave_nothing_out() -> None:
    assert _first_cells("| outcome |") == set(Proof.values)
    assert _first_cells("| evidence |") == {one.value for one in OutcomeSource} - {OutcomeSource.UNSENT}
    assert _first_cells("| report |") == {"delivered", "failed"}
    assert all(f"`{one}`:" in MANUAL for one in VERDICTS)
