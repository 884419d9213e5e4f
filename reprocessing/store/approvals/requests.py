"""Store requests for approval, and their results. Each change is recorded in the audit log, and people are notified."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from reprocessing.domain.approvals.person import person_key
from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_approval
from reprocessing.domain.parking_lot.bulk_edit import PATCH
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import Approval, AuditAct, AuditEntry, DeadLetterQueue, Letter, UnapprovedAction
from reprocessing.models.audit import ApprovalState
from reprocessing.store.approvals.frozen import Frozen
from reprocessing.store.approvals.guard import WITHIN
from reprocessing.store.notifications.outbox import announce, conclude
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content
from reprocessing.store.search import stored_filters

#: The name in the audit log if no person ended the request: it became void, or expired.
_NOBODY: Final = "the service"
_ACTS: Final = {
    ApprovalState.OPEN: AuditAct.REQUESTED, ApprovalState.APPROVED: AuditAct.APPROVED,
    ApprovalState.DECLINED: AuditAct.DECLINED, ApprovalState.EXPIRED: AuditAct.EXPIRED,
    ApprovalState.VOID: AuditAct.VOIDED, ApprovalState.ALONE: AuditAct.ACTED_ALONE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SealedAction:
    """The parts of an action of a person that are stored encrypted, and a keyed digest of the action (`stamp`).

    `body`, `attributes`: the new content of an edited message; None: the action does not edit a single message.
    `arguments`: the action's options. The text that its filter searches for is encrypted, and so is the patch of a bulk
    edit, which says how to change each message.
    """

    arguments: Mapping[str, Any]
    body: bytes | None
    attributes: bytes | None
    stamp: bytes


def seal(action: RequestedAction) -> SealedAction:
    """Encrypt the parts of an action that may have message data, and return them. Raises PayloadKeyUnavailable.

    Call it outside a transaction, because it may call AWS KMS.
    """
    (stamp,) = content.keyed([action.stamp])
    arguments = _with_texts(action.arguments, stored_filters.sealed, content.sealed_text)
    if action.body is None or action.attributes is None:
        return SealedAction(arguments, None, None, stamp)
    dlq_id, message_id = Letter.objects.values_list("dlq_id", "message_id").get(pk=action.letters[0])
    sealer = content.sealer_of(dlq_id, database_now().date())
    return SealedAction(
        arguments, sealer.bytes(action.body, Part.BODY, of=message_id),
        sealer.bytes(action.attributes, Part.ATTRIBUTES, of=message_id), stamp,
    )  # fmt: skip


def create(  # noqa: PLR0913  # each by its name
    action: RequestedAction, sealed: SealedAction, frozen: Frozen, preview: Collection[tuple[str, str]], *,
    messages: int | None, by: str, reason: str, expires_at: datetime,
) -> Approval:  # fmt: skip
    """Store a request for approval of an action of a person, and return the request.

    If the person has an equal open request, return that request instead. The caller's transaction must hold a lock for
    which other requests of this person wait. Otherwise two equal requests could be stored. `messages`: the number of
    messages that the action is about; None: it is about rules or settings. `preview`: what the approver will see, as
    pairs (label, text).
    """
    key = person_key(by)
    known = Approval.objects.filter(
        state=ApprovalState.OPEN, stamp=sealed.stamp, digest=frozen.digest, by_key=key, expires_at__gt=database_now()
    ).first()
    if known is not None:
        return known
    row = Approval.objects.create(
        action=action.kind.value, title=action.title, arguments=dict(sealed.arguments), letters=list(action.letters),
        body=sealed.body, attributes=sealed.attributes, stamp=sealed.stamp, digest=frozen.digest,
        dlq_ids=sorted(frozen.dlqs), messages=messages, preview=[list(pair) for pair in preview], by=by, by_key=key,
        reason=reason, expires_at=expires_at,
    )  # fmt: skip
    _record(row, ApprovalState.OPEN, by=by, reason=reason, counts=frozen.messages)
    announce([Event(EventKind.APPROVAL_REQUESTED, of_approval(row.pk), _facts(row), dlq_id=_only_dlq(row))])
    return row


def action_of(row: Approval) -> RequestedAction:
    """Return the action of a stored request, decrypted. Raises PayloadUnreadable."""
    body = attributes = None
    if row.body is not None and row.attributes is not None:
        message_id = Letter.objects.values_list("message_id", flat=True).get(pk=row.letters[0])
        body = content.opened_bytes(bytes(row.body), Part.BODY, of=message_id)
        attributes = content.opened_bytes(bytes(row.attributes), Part.ATTRIBUTES, of=message_id)
    arguments = _with_texts(row.arguments, stored_filters.opened, content.opened_text)
    return RequestedAction(ActionKind(row.action), row.title, arguments, tuple(row.letters), body, attributes)


def void_edits(letters: Collection[int], why: str) -> int:
    """End the open requests to edit these letters, whose content was removed, in state void; return how many ended."""
    found = Approval.objects.select_for_update().filter(state=ApprovalState.OPEN, letters__overlap=list(letters))
    edits = list(found.exclude(body=None).order_by("pk"))
    for row in edits:
        end(row, ApprovalState.VOID, why)
    return len(edits)


def lock(approval: int) -> Approval | None:
    """Lock the request for approval with this id until the transaction ends, and return it; None: there is none."""
    return Approval.objects.select_for_update().filter(pk=approval).first()


def decide(row: Approval, state: ApprovalState, *, by: str, reason: str) -> None:
    """Record a person's decision about a request. `state`: approved, declined, or alone (done without approval).

    If the request is not declined, the caller executes the action in the same transaction.
    """
    _end(row, state, decided_by=by, decided_key=person_key(by), decision_reason=reason)
    _record(row, state, by=by, reason=reason)


def end(row: Approval, state: ApprovalState, outcome: str) -> None:
    """End a locked request, void or expired, whose action is then not executed. `outcome`: the reason, for people."""
    _end(row, state, outcome=outcome)
    _record(row, state, by=_NOBODY, reason=outcome)


def finish(row: Approval, outcome: str) -> None:
    """Record what the executed action did (`outcome`, for people). If a person acted alone, send a notification."""
    Approval.objects.filter(pk=row.pk).update(outcome=outcome)
    if row.state == ApprovalState.ALONE:
        facts = _facts(row) | {"who": row.decided_by, "why": row.decision_reason}
        announce([Event(EventKind.ACTED_ALONE, of_approval(row.pk), facts, dlq_id=_only_dlq(row))])


def expired() -> list[int]:
    """Return the ids of open requests past their `expires_at`; the caller must end them."""
    over = Approval.objects.filter(state=ApprovalState.OPEN, expires_at__lte=database_now()).order_by("pk")
    return list(over.values_list("pk", flat=True))


def delete_ended(*, history: float) -> int:
    """Delete requests that ended more than `history` seconds ago; return how many.

    Also delete the counts of messages that people handled alone more than a day ago: limits count only 24 hours.
    """
    now = database_now()
    UnapprovedAction.objects.filter(at__lte=now - WITHIN).delete()
    return Approval.objects.filter(ended_at__lt=now - timedelta(seconds=history)).delete()[0]


def _with_texts(
    arguments: Mapping[str, Any],
    filters: Callable[[Mapping[str, Any]], dict[str, Any]],
    texts: Callable[[str, Part], str],
) -> dict[str, Any]:
    """Return an action's arguments, with its filter converted by `filters`, and its patch converted by `texts`."""
    changed = dict(arguments)
    if "filter" in arguments:
        changed["filter"] = filters(arguments["filter"])
    if PATCH in arguments:
        changed[PATCH] = texts(arguments[PATCH], Part.PATCH)
    return changed


def _end(row: Approval, state: ApprovalState, **values: str) -> None:
    changed: dict[str, Any] = {"state": state, "ended_at": database_now(), "body": None, "attributes": None, **values}
    changed["arguments"] = {name: value for name, value in row.arguments.items() if name != PATCH}
    for name, value in changed.items():
        setattr(row, name, value)
    row.save(update_fields=list(changed))
    announce([Event(EventKind.APPROVAL_REQUESTED, of_approval(row.pk), _facts(row), dlq_id=_only_dlq(row))])
    conclude([(EventKind.APPROVAL_REQUESTED, of_approval(row.pk))])


def _record(
    row: Approval, state: ApprovalState, *, by: str, reason: str, counts: Mapping[int, int] | None = None
) -> None:
    """Write an audit log entry for each DLQ of the action, so that the DLQ's teams see it.

    An action about all DLQs gets one entry. `counts`: the number of messages of each DLQ, by the DLQ's id. Without
    `counts`, the entries of several DLQs have no number, because the teams of one DLQ must not see the sum over all.
    """
    told = {"approval": row.pk, "what": row.title, "requested_by": row.by}
    numbers = counts or (dict.fromkeys(row.dlq_ids, row.messages) if len(row.dlq_ids) == 1 else {})
    AuditEntry.objects.bulk_create(
        AuditEntry(act=_ACTS[state], dlq=dlq, by=by, reason=reason, after=told | _number_of(dlq, numbers))
        for dlq in _dlqs_of(row)
    )


def _number_of(dlq: DeadLetterQueue | None, numbers: Mapping[int, int | None]) -> dict[str, int | None]:
    return {"messages": numbers[dlq.pk]} if dlq is not None and dlq.pk in numbers else {}


def _dlqs_of(row: Approval) -> list[DeadLetterQueue | None]:
    return [*DeadLetterQueue.objects.filter(pk__in=row.dlq_ids).order_by("pk")] or [None]


def _only_dlq(row: Approval) -> int | None:
    return row.dlq_ids[0] if len(row.dlq_ids) == 1 else None


def _facts(row: Approval) -> dict[str, str | int | float]:
    names = list(DeadLetterQueue.objects.filter(pk__in=row.dlq_ids).order_by("name").values_list("name", flat=True))
    facts: dict[str, str | int | float] = {"approval_id": row.pk, "what": row.title, "by": row.by}
    facts["dlq"] = ", ".join(names) or "all DLQs"
    how = ApprovalState(row.state).label
    facts["how"] = f"{how}, by {row.decided_by}" if row.decided_by else how
    return facts if row.messages is None else facts | {"messages": row.messages}
