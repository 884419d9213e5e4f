"""Show the plan of apply_config, or the problems of its file, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reprocessing.domain.configuration.changes import Action, FieldChange, ObjectChange
from reprocessing.domain.configuration.document import Problem
from reprocessing.domain.configuration.keys import Kind
from reprocessing.management.output.drain_output import counted
from reprocessing.pipeline.configuration.plan import Plan

#: A function that returns the text of a setting for the plan, from the setting's key and value.
Shown = Callable[[str, Any], str]


def problem_lines(file: str, problems: Iterable[Problem]) -> Iterable[str]:
    """Yield a line for each problem of the file, as FILE:LINE, in the order of the lines."""
    for problem in sorted(problems, key=lambda one: (one.line, one.path)):
        place = f"{problem.place}: " if problem.path else ""
        yield f"{file}:{problem.line}: {place}{problem.text}"


def plan_lines(plan: Plan, shown: Shown) -> Iterable[str]:
    """Yield the lines of a plan: each changed object, with its settings before and after.

    `shown` returns the text of a setting's value.
    """
    for change in plan.changes:
        yield f"{change.action} {change.kind.singular} {change.name}"
        yield from (_field(change, one, shown) for one in change.fields)
        if change.action is Action.CHANGE and not change.fields:
            own = plan.desired[change.kind][change.name]["own_settings"]
            yield f"    own settings: {', '.join(own) or 'none'}"
        for finding in plan.examined.findings.get((change.kind, change.name), ()):
            yield f"    {finding.severity.upper()} {finding.what} {finding.cure}".rstrip()
    if plan.missing:
        names = ", ".join(f"{kind.singular} {name}" for kind, name in plan.missing)
        yield f"Not in the file, kept (--prune removes them): {names}"


def _field(change: ObjectChange, field: FieldChange, shown: Shown) -> str:
    of = " (from the policy)" if field.inherited else ""
    before, after = (
        "-" if change.kind is Kind.POLICY and value is None else shown(field.key, value)
        for value in (field.before, field.after)
    )
    return (
        f"    {field.key}: {after}{of}" if change.action is Action.ADD else f"    {field.key}: {before} → {after}{of}"
    )


def counts(changes: Sequence[ObjectChange]) -> str:
    """Return a text with the number of objects that are added, changed and removed."""
    said = {Action.ADD: "added", Action.CHANGE: "changed", Action.REMOVE: "removed"}
    found = [(sum(one.action is action for one in changes), word) for action, word in said.items()]
    return ", ".join(f"{counted(n, 'object')} {word}" for n, word in found if n)


def in_json(plan: Plan, *, acted: bool) -> dict[str, Any]:
    """Return the plan of apply_config as JSON. If `acted` is true, the plan was executed.

    A DLQ may have been changed from mode automatic to manual, while its automatic run still sends messages. `notes` has
    a sentence about each such DLQ.
    """
    return {
        "dry_run": not acted,
        "changes": [
            {
                "action": change.action.name.lower(),
                "section": change.kind.value,
                "name": change.name,
                "settings": [{"key": one.key, "before": one.before, "after": one.after} for one in change.fields],
            }
            for change in plan.changes
        ],
        "notes": plan.still_sending() if acted else [],
        "missing": [{"section": kind.value, "name": name} for kind, name in plan.missing],
    }
