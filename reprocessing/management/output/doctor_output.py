"""Show the results of redrive_doctor as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, Final

from reprocessing.domain.maintenance.findings import DoctorFinding, FindingSeverity
from reprocessing.pipeline.maintenance.doctor import CheckResult

_WIDTH: Final = 116  #: columns of text
_MARKS: Final = {
    FindingSeverity.ERROR: "ERROR",
    FindingSeverity.WARN: "warning",
    FindingSeverity.UNKNOWN: "unknown",
    FindingSeverity.NOTE: "note",
    FindingSeverity.WELL: "ok",
}
_INDENT: Final = " " * 10


def check_lines(result: CheckResult) -> Iterator[str]:
    """Yield lines with the results of one check, the worst result first."""
    yield result.title
    order = list(FindingSeverity)
    for one in sorted(result.findings, key=lambda finding: order.index(finding.severity)):
        yield from _finding_lines(result.title, one)


def _finding_lines(title: str, one: DoctorFinding) -> Iterator[str]:
    where = "" if one.where == title else f"{one.where}: "
    yield from _wrapped(f"  {_MARKS[one.severity]:7} {where}{one.what}")
    if one.why:
        yield from _wrapped(f"{_INDENT}{one.why}")
    if one.cure:
        yield from _wrapped(f"{_INDENT}-> {one.cure}")


def _wrapped(text: str) -> list[str]:
    """Wrap text to 116 columns, but only at spaces, so that options, URLs and ARNs stay whole."""
    return wrap(text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)


def count_by_severity(results: Iterable[CheckResult]) -> dict[str, int]:
    """Return the number of findings of each severity (error, warn, unknown, …)."""
    found = Counter(one.severity for result in results for one in result.findings)
    return {severity.value: found[severity] for severity in FindingSeverity}


def summary(counts: dict[str, int]) -> str:
    """Return the number of errors, warnings and unknown results as a sentence, or the text "No problems found."."""
    if not counts["error"] and not counts["warn"] and not counts["unknown"]:
        return "No problems found."
    words = {"error": "error", "warn": "warning"}
    found = [f"{counts[severity]} {word}{'' if counts[severity] == 1 else 's'}" for severity, word in words.items()]
    return f"{', '.join(found)}, {counts['unknown']} unknown."


def in_json(results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return the results of the checks as JSON."""
    counts = count_by_severity(results)
    return {
        "well": not counts["error"],
        "counts": counts,
        "findings": [
            {
                "check": result.title,
                "severity": one.severity.value,
                "where": one.where,
                "what": one.what,
                "why": one.why,
                "cure": one.cure,
            }
            for result in results
            for one in result.findings
        ],
    }
