"""Store a configuration file's plan as one action (`RequestedAction`), which a second person approves as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from reprocessing.conf import Conf
from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.configuration.changes import Action, FieldChange, ObjectChange
from reprocessing.domain.configuration.keys import Kind, State
from reprocessing.pipeline.configuration.plan import Plan, make_plan

_TITLE: Final = "Apply a configuration file"


def action_of(plan: Plan, source: str) -> RequestedAction:
    """Return the action that applies this plan. `source`: the version of the configuration file; may be empty."""
    said = {
        # A list, because JSON objects in PostgreSQL do not keep the order of the file.
        "given": [[kind.value, [[*item] for item in names.items()]] for kind, names in plan.given.items()],
        "prune": plan.prune,
        "source": source,
        "changes": [[_label(change), _words(change)] for change in plan.changes],
        "examined": _digest(plan),
    }
    return RequestedAction(ActionKind.APPLY_CONFIGURATION, _TITLE, said)


def plan_again(action: RequestedAction, conf: Conf) -> Plan:
    """Return a new plan of the configuration file that `action` applies, by current settings and queues."""
    given: State = {Kind(kind): dict(names) for kind, names in action.arguments["given"]}
    return make_plan(given, conf, prune=action.arguments["prune"])


def source_of(action: RequestedAction) -> str:
    """Return the version of the configuration file that an action applies (`apply_config --source`); may be empty."""
    return str(action.arguments["source"])


def preview(action: RequestedAction) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each changed object, with its settings before and after, for the approver."""
    if source := source_of(action):
        yield "Source", source
    yield from ((label, words) for label, words in action.arguments["changes"])


def _label(change: ObjectChange) -> str:
    verb = {Action.ADD: "Add", Action.CHANGE: "Change", Action.REMOVE: "Remove"}[change.action]
    return f"{verb} {change.kind.singular} {change.name}"


def _words(change: ObjectChange) -> str:
    if change.action is Action.REMOVE:
        return "removed"
    return "; ".join(_setting(change.action, setting) for setting in change.fields) or "own settings"


def _setting(action: Action, setting: FieldChange) -> str:
    before, after = ("not set" if value is None else value for value in (setting.before, setting.after))
    return f"{setting.key}: {after}" if action is Action.ADD else f"{setting.key}: {before} → {after}"


def _digest(plan: Plan) -> str:
    """Return a digest of the values that the plan read from the queues and that an apply would store.

    If the digest differs after planning again, the approved plan must not be applied.
    """
    found: dict[str, Any] = {
        name: [one.proposal.dlq, one.proposal.ways, one.proposal.targets, one.proposal.default_source]
        for name, one in plan.examined.dlqs.items()
    }
    found |= {arn: case.fields for arn, case in plan.examined.targets.items()}
    told = [found, sorted(plan.examined.rule_targets)]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
