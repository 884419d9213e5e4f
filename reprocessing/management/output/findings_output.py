"""What an examination found, and what it would change, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reprocessing.pipeline.dlqs.examine import Finding
from reprocessing.store.differences import Difference

OFF = "off"


def lines(changes: Iterable[Difference], findings: Iterable[Finding], *, new: bool) -> Iterable[str]:
    """All of it for people."""
    for change in changes:
        yield f"  {_change(change, new=new)}"
    for finding in findings:
        cure = f"\n          {finding.cure}" if finding.cure else ""
        yield f"  {finding.severity.upper():7} {finding.what}{cure}"


def in_json(changes: Iterable[Difference], findings: Iterable[Finding]) -> dict[str, Any]:
    """All of it for programs."""
    return {
        "changes": [{"of": one.of, "field": one.field, "before": one.before, "after": one.after} for one in changes],
        "findings": [{"severity": one.severity.value, "what": one.what, "cure": one.cure} for one in findings],
    }


def _change(one: Difference, *, new: bool) -> str:
    before = "" if new or one.before is None else f"{one.before} -> "
    return f"{one.about}.{one.field}: {before}{OFF if one.after is None else one.after}"
