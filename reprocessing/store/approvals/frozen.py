"""Compute a digest of what an action of a person would act on, to detect changes before its approval.

An action is about messages, a run, rules or settings. The digest is computed when approval is requested, and again when
a second person approves. If the two digests differ, something has changed, and the request is void.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import ApprovalDefault, DeadLetterQueue, Run
from reprocessing.store import rows
from reprocessing.store.configuration import state
from reprocessing.store.routing import rules
from reprocessing.store.runs import run_transitions
from reprocessing.store.search import filter_conditions

# A person decides by these values of a letter, so a change of any of them changes the digest.
_LETTERS: Final[LiteralString] = """
SELECT l.dlq_id, count(*) AS messages,
       sha256(convert_to(string_agg(format('%%s|%%s|%%s|%%s|%%s|%%s|%%s|%%s', l.id, l.state,
              extract(epoch FROM l.finished_at), l.revision_id, l.epoch, l.reason, l.target_id, l.attempts),
              ',' ORDER BY l.id), 'UTF8')) AS digest
  FROM redrive_letter l WHERE {where} GROUP BY l.dlq_id ORDER BY l.dlq_id
"""
_BY_ID: Final[LiteralString] = "l.id = ANY(%(letters)b::bigint[])"
_OF_RUN: Final[LiteralString] = "l.run_id = %(run)b AND l.state IN ('captured', 'waiting')"


class Vanished(LookupError):
    """The run that an action would start or resume has been deleted."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """The messages, rules or settings that an action would act on, at one moment.

    Attributes:
        digest: a digest of the values that a person decides by. Equal digests: none of these values changed.
        messages: the number of messages in each DLQ, by the DLQ's id; empty for actions about rules or settings.
        dlqs: ids of the DLQs that the action concerns; empty: all DLQs.
    """

    digest: bytes
    messages: Mapping[int, int]
    dlqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Counted:
    dlq_id: int
    messages: int
    digest: bytes


def freeze(action: RequestedAction) -> Frozen:
    """Return what an action of a person would act on now: messages, rules or settings.

    Raises:
        Vanished: the action is about a run, and the run has been deleted.
    """
    match action.kind:
        case ActionKind.RELEASE | ActionKind.DISCARD | ActionKind.RESTORE | ActionKind.EDIT:
            return _freeze_letters(_counts_of_letters(action))
        case ActionKind.START_RUN | ActionKind.RESUME_RUN | ActionKind.REOPEN_RUN:
            return _freeze_run(action.arguments["run"])
        case ActionKind.SAVE_RULE | ActionKind.SWITCH_RULE | ActionKind.REMOVE_RULE:
            return _freeze_values(rules.version(), action.arguments["about"])
        case ActionKind.CHANGE_SETTINGS:
            return _freeze_values(settings_now(action), [dlq] if (dlq := action.arguments["dlq"]) else [])
        case ActionKind.APPLY_CONFIGURATION:
            return _freeze_values(state.read_state(), [])


def count_by_dlq(criteria: MessageFilter) -> dict[int, int]:
    """Return how many messages a filter matches in each DLQ, by the DLQ's id."""
    return {counted.dlq_id: counted.messages for counted in _counts_of_matching(criteria)}


def settings_now(action: RequestedAction) -> dict[str, Any]:
    """Return the present values of the settings that an action of a person would change."""
    dlq, fields = action.arguments["dlq"], action.arguments["fields"]
    if dlq is None:
        return {"above": ApprovalDefault.objects.values_list("above", flat=True).first()}
    return DeadLetterQueue.objects.filter(pk=dlq).values(*fields).first() or {}


def _counts_of_letters(action: RequestedAction) -> list[_Counted]:
    if "filter" in action.arguments:
        return _counts_of_matching(MessageFilter.read(action.arguments["filter"]))
    return rows.fetch(_Counted, _LETTERS.format(where=_BY_ID), {"letters": list(action.letters)})


def _counts_of_matching(criteria: MessageFilter) -> list[_Counted]:
    where = filter_conditions.where_clause(criteria, whole=True)
    return rows.fetch(_Counted, _LETTERS.format(where=where), filter_conditions.sql_parameters(criteria))


def _freeze_letters(found: list[_Counted]) -> Frozen:
    values = [[counted.dlq_id, counted.messages, counted.digest.hex()] for counted in found]
    messages = {counted.dlq_id: counted.messages for counted in found}
    return Frozen(_digest(values), messages, tuple(messages))


def _freeze_run(run: int) -> Frozen:
    row = Run.objects.filter(pk=run).first()
    if row is None:
        raise Vanished("The run does not exist any more.")
    found = rows.fetch(_Counted, _LETTERS.format(where=_OF_RUN), {"run": run})
    values = [run_transitions.page_stamp(row), *([counted.messages, counted.digest.hex()] for counted in found)]
    return Frozen(_digest(values), {row.dlq_id: sum(counted.messages for counted in found)}, (row.dlq_id,))


def _freeze_values(values: object, dlqs: Sequence[int]) -> Frozen:
    return Frozen(_digest(values), {}, tuple(dlqs))


def _digest(values: object) -> bytes:
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).digest()
