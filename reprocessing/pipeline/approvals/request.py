"""Request the approval of a second person for an action (`RequestedAction`) that one person may not execute alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, LiteralString

from reprocessing.domain.approvals.person import is_one_name, person_key
from reprocessing.domain.approvals.requested_action import ActionKind, ApprovalNeeded, ApprovalRefused, RequestedAction
from reprocessing.models import Approval
from reprocessing.pipeline.approvals import previews
from reprocessing.store import rows
from reprocessing.store.approvals import frozen, requests
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions

#: Requests of one person wait for each other, so that a form that is sent twice makes only one request.
_TURN: Final = "SELECT pg_advisory_xact_lock(1381126740, hashtext(%(who)b::text)) IS NOT NULL AS done"
# The DLQ's next plan replaces plans that nobody named. A plan whose start is requested must stay, so mark it as named.
_KEEP_PLAN: Final[LiteralString] = (
    "UPDATE redrive_run SET selection = selection - 'unnamed' WHERE id = %(run)b AND state = 'planned'"
)


def request(needed: ApprovalNeeded, *, by: str, reason: str, lasts: timedelta) -> Approval:
    """Store a request for the approval of an action, notify people, and return the request.

    A digest of the messages, rules or settings that the action would change is stored with the request. If they change
    later, the request becomes void, since the approver would approve something else.

    Args:
        needed: the error that refused the action. It contains the action.
        by: who requests the approval.
        reason: why.
        lasts: time after which the request expires.

    Raises:
        ApprovalRefused: the person or the reason is missing, or the message to edit is no longer parked.
    """
    if not by.strip() or not reason.strip():
        raise ApprovalRefused(f"{needed.action.title}: this needs a second person, and so a reason. Give a reason.")
    if not is_one_name(by):
        raise ApprovalRefused("Give one person's name. It cannot contain 'approved by' or 'without approval'.")
    action = needed.action
    sealed = requests.seal(action)

    def work() -> Approval:
        rows.execute(_TURN, {"who": person_key(by)})
        if action.kind is ActionKind.EDIT:
            _require_parked(action)
        if action.kind is ActionKind.START_RUN:
            rows.execute(_KEEP_PLAN, {"run": action.arguments["run"]})
        found = frozen.freeze(action)
        number = sum(found.messages.values()) if found.messages else None
        told = previews.describe(action, found)
        until = lanes.database_now() + lasts
        return requests.create(action, sealed, found, told, messages=number, by=by, reason=reason, expires_at=until)

    return rows.in_transaction(work)


def _require_parked(action: RequestedAction) -> None:
    """Lock the letter that the action edits. Raise ApprovalRefused if the letter is not parked any more."""
    for letter in decisions.lock_letters(action.letters, need_lane=False):
        if letter.refusal:
            raise ApprovalRefused(f"{action.title}: nothing was requested, because {letter.refusal}.")
