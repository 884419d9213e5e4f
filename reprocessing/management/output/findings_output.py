"""Show changed settings, and problems that an examination of queues found, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reprocessing.management.arguments import OFF
from reprocessing.pipeline.dlqs.examine import Finding
from reprocessing.store.proposed_changes import Difference


def lines(changes: Iterable[Difference], findings: Iterable[Finding], *, new: bool) -> Iterable[str]:
    """Yield a line for each changed setting and each problem. `new`: the object is new, so old values are left out."""
    for one in changes:
        before = "" if new or one.before is None else f"{one.before} -> "
        yield f"  {one.label}.{one.field}: {before}{OFF if one.after is None else one.after}"
    for finding in findings:
        cure = f"\n          {finding.cure}" if finding.cure else ""
        yield f"  {finding.severity.upper():7} {finding.what}{cure}"


def in_json(changes: Iterable[Difference], findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the changed settings and the problems as JSON."""
    return {
        "changes": [{"of": one.name, "field": one.field, "before": one.before, "after": one.after} for one in changes],
        "findings": [{"severity": one.severity.value, "what": one.what, "cure": one.cure} for one in findings],
    }


def outcome(name: str, *, new: bool, changed: bool, acted: bool) -> str:
    """Return a sentence: the object `name` is added, is changed, or needs no change; in a dry run, would be.

    `acted`: this was no dry run.
    """
    if not new and not changed:
        return f"{name}: nothing to change."
    verb = "added" if new else "changed"
    return f"{name} is {verb}." if acted else f"This was a dry run: {name} is {verb} with --confirm."


def fields_in_json(changes: Iterable[Difference]) -> list[dict[str, Any]]:
    """Return the changed fields as JSON, with their values before and after."""
    return [{"field": one.field, "before": one.before, "after": one.after} for one in changes]
