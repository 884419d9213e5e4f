"""Show changed settings, and problems that a command found in queues or settings, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from reprocessing.domain.configuration.keys import Kind, key_of
from reprocessing.management.arguments import OFF
from reprocessing.pipeline.dlqs.examine import Finding
from reprocessing.store.proposed_changes import Difference

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
#: Fields of DLQs and targets whose values are seconds.
_SECONDS: Final = frozenset({
    "retention", "window", "visibility", "interval", "backoff_base", "backoff_cap", "new_key_delay", "give_up_after",
    "breaker_cooldown", "ramp_every", "timeout",
})  # fmt: skip


def lines(changes: Iterable[Difference], findings: Iterable[Finding], *, new: bool) -> Iterable[str]:
    """Yield a line for each changed setting and each problem. If the object is `new`, leave out the old values."""
    for one in changes:
        before = "" if new or one.before is None else f"{_with_unit(one.field, one.before)} -> "
        key = one.field if one.field == "kind" else key_of(Kind.DLQ, key_of(Kind.TARGET, one.field))
        yield f"  {one.label}.{key}: {before}{_with_unit(one.field, one.after)}"
    for finding in findings:
        cure = f"\n          {finding.cure}" if finding.cure else ""
        yield f"  {finding.severity.upper():7} {finding.what}{cure}"


def _with_unit(field: str, value: object) -> object:
    """Return a setting's value as text for people: `off` for None, and a number of seconds with a unit."""
    if value is None:
        return OFF
    if field not in _SECONDS or not isinstance(value, (int, float)) or isinstance(value, bool):
        return value
    unit, length = next((pair for pair in _UNITS if value >= pair[1] and value % pair[1] == 0), ("", 0))
    if not length:
        return f"{value:g} s"
    count = int(value // length)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def in_json(changes: Iterable[Difference], findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the changed settings and the problems as JSON."""
    return {
        "changes": [{"of": one.name, "field": one.field, "before": one.before, "after": one.after} for one in changes],
        "findings": [{"severity": one.severity.value, "what": one.what, "cure": one.cure} for one in findings],
    }


def outcome(name: str, *, new: bool, changed: bool, acted: bool) -> str:
    """Return a sentence that the object `name` is added, is changed, or needs no change.

    If `acted` is false, this was a dry run, and the sentence says what --confirm would do.
    """
    if not new and not changed:
        return f"{name}: nothing to change."
    verb = "added" if new else "changed"
    return f"{name} is {verb}." if acted else f"This was a dry run: {name} is {verb} with --confirm."


def fields_in_json(changes: Iterable[Difference]) -> list[dict[str, Any]]:
    """Return the changed fields as JSON, with their values before and after."""
    return [{"field": one.field, "before": one.before, "after": one.after} for one in changes]
