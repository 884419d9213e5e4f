"""Describe an action (`RequestedAction`) for the person who is asked to approve it. No message data is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.runs.forecast import rate_in_words
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import DeadLetterQueue, Letter, Run, Target
from reprocessing.pipeline.configuration import frozen_plan
from reprocessing.store.approvals import frozen
from reprocessing.store.approvals.frozen import Frozen


def describe(action: RequestedAction, found: Frozen) -> list[tuple[str, str]]:
    """Return pairs (label, text) that say what an action does, and to which messages, rules or settings.

    `found`: the messages, rules or settings that the action would change now.
    """
    names = dict(DeadLetterQueue.objects.filter(pk__in=found.dlqs).values_list("pk", "name"))
    told = [("Dead-letter queue", ", ".join(sorted(names.values())) or "all")]
    told += [(f"Messages of {names.get(dlq, dlq)}", f"{n:,}") for dlq, n in found.messages.items()]
    return [*told, *_more(action)]


def _more(action: RequestedAction) -> Iterator[tuple[str, str]]:
    said = action.arguments
    match action.kind:
        case ActionKind.RELEASE | ActionKind.DISCARD | ActionKind.RESTORE:
            yield from _of_decision(said)
        case ActionKind.EDIT if "filter" in said:
            yield from _of_decision(said)
            yield from _of_bulk_edit(said)
        case ActionKind.EDIT:
            yield (
                "Message",
                str(Letter.objects.filter(pk__in=action.letters).values_list("message_id", flat=True).first()),
            )
            yield "Afterwards", "it is released" if said["replay"] else "it stays parked"
            yield "Idempotency key", "a new one" if said["key"] else "unchanged"
        case ActionKind.START_RUN | ActionKind.RESUME_RUN | ActionKind.REOPEN_RUN:
            yield from _of_run(Run.objects.get(pk=said["run"]))
        case ActionKind.SAVE_RULE | ActionKind.SWITCH_RULE | ActionKind.REMOVE_RULE:
            yield "Rule", said["name"]
            yield from ((field, _change(before, after)) for field, before, after in said.get("differences", ()))
        case ActionKind.CHANGE_SETTINGS:
            now = frozen.settings_now(action)
            yield from ((field, _change(now.get(field), value)) for field, value in said["fields"].items())
        case ActionKind.APPLY_CONFIGURATION:
            yield from frozen_plan.preview(action)


def _of_decision(said: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  JSON
    if "filter" in said:
        yield "Selection", f"all {MessageFilter.read(said['filter']).sentence(covered=True)}"
    if said.get("due"):
        yield "Not before", f"{said['due']} (UTC)"
    if said.get("target"):
        yield "Target", str(Target.objects.filter(pk=said["target"]).first() or said["target"])


def _of_bulk_edit(said: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  JSON
    yield "Changes in each body", "; ".join(said["operations"])
    yield "Afterwards", "they are released" if said["release"] else "they stay parked"
    yield "Idempotency keys", "new ones" if said["new_keys"] else "unchanged"
    if said["changes_keys"]:
        yield "Keys", "values from which keys are read may change"


def _of_run(run: Run) -> Iterator[tuple[str, str]]:
    yield "Run", run.name
    if not run.is_for_released_letters:
        yield "Selection", str(Selection.read(run.selection))
    yield "Waves", "1 message first, then 10, then 100, then all" if run.waves else "no: all at once"
    if run.rate is not None:
        yield "Max rate", f"{rate_in_words(run.rate, digits=12)} to each target"
    if not run.waits_for_outcomes:
        yield "Order", "does not wait for outcomes: a message that fails is sent again after later ones of its key"


def _change(before: object, after: object) -> str:
    return f"{'not set' if before is None else before} → {'not set' if after is None else after}"
