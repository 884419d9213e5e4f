"""What the doctor found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, Final

from reprocessing.domain.maintenance.findings import Grade, Remark
from reprocessing.pipeline.maintenance.doctor import Look

_WIDTH: Final = 116
_MARKS: Final = {Grade.ILL: "ILL", Grade.WARN: "warn", Grade.UNKNOWN: "unknown", Grade.NOTE: "note", Grade.WELL: "ok"}
_INDENT: Final = " " * 10


def lines(look: Look) -> Iterator[str]:
    """One look: what is well in a line each, the rest with what follows and its cure; the worst first."""
    yield look.title
    order = list(Grade)
    for one in sorted(look.remarks, key=lambda remark: order.index(remark.grade)):
        yield from _remark(look.title, one)


def _remark(title: str, one: Remark) -> Iterator[str]:
    where = "" if one.where == title else f"{one.where}: "
    yield from _wrapped(f"  {_MARKS[one.grade]:7} {where}{one.what}")
    if one.why:
        yield from _wrapped(f"{_INDENT}{one.why}")
    if one.cure:
        yield from _wrapped(f"{_INDENT}-> {one.cure}")


def _wrapped(text: str) -> list[str]:
    """Commands, URLs and ARNs are never cut."""
    return wrap(text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)


def counted(looks: Iterable[Look]) -> dict[str, int]:
    """How many remarks there are of each grade."""
    found = Counter(one.grade for look in looks for one in look.remarks)
    return {grade.value: found[grade] for grade in Grade}


def last_line(counts: dict[str, int]) -> str:
    """All of it in a sentence."""
    if not counts["ill"] and not counts["warn"] and not counts["unknown"]:
        return "Nothing ails it."
    parts = [f"{counts['ill']} ill", f"{counts['warn']} to be warned of", f"{counts['unknown']} not known"]
    return f"Found: {', '.join(parts)}."


def in_json(looks: Sequence[Look]) -> dict[str, Any]:
    """All of it for programs."""
    counts = counted(looks)
    return {
        "well": not counts["ill"],
        "counts": counts,
        "remarks": [
            {
                "look": look.title,
                "grade": one.grade.value,
                "where": one.where,
                "what": one.what,
                "why": one.why,
                "cure": one.cure,
            }
            for look in looks
            for one in look.remarks
        ],
    }
