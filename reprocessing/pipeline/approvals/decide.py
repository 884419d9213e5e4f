"""Approve or decline a requested action (`RequestedAction`), or execute the action without a second person.

An approved action is executed at once, and only once. If the messages, rules or settings that it would change have
changed since the request, the request becomes void, and nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from reprocessing.conf import Conf
from reprocessing.domain.approvals.person import is_one_name, signed_alone, signed_by_both
from reprocessing.domain.approvals.requested_action import ApprovalRefused, RequestedAction
from reprocessing.domain.errors import PayloadUnreadable, RedriveError
from reprocessing.models import Approval
from reprocessing.models.audit import ApprovalState
from reprocessing.pipeline.approvals import perform
from reprocessing.pipeline.approvals.perform import Order, Performed
from reprocessing.pipeline.configuration.plan import Plan
from reprocessing.store import rows
from reprocessing.store.approvals import frozen, people, requests
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions
from reprocessing.store.routing import rules

_EXPIRED = "Nobody approved it in time."


@dataclass(frozen=True, slots=True)
class Done:
    """The requested action was executed, or its request was declined. `summary`: a sentence that says which."""

    summary: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """The request was not approved or declined, and nothing was done. `why`: the reason, as text for people.

    Reasons: the request is void or has expired, somebody has decided it before, or this person may not decide it.
    """

    why: str


Decision = Done | NotDone


def approve(approval: int, *, by: str, reason: str, conf: Conf) -> Decision:
    """Approve the request with this id as the second person (`by`), and execute its action; the audit log names both.

    The caller must have checked that the second person may execute the action: they have all permissions that
    `domain.approvals.requested_action.permissions_for` returns, and see all DLQs of the action.
    """

    def may(row: Approval) -> str:
        if people.is_same_person(row.by, by):
            return f"{row.by} made the request, so somebody else must approve it."
        return ""

    return _execute(approval, ApprovalState.APPROVED, may, by=by, reason=reason, conf=conf)


def act_alone(approval: int, *, by: str, reason: str, conf: Conf) -> Decision:
    """Execute a requested action without a second person (break-glass). The audit log and a notification say so.

    Raises:
        ApprovalRefused: the person or the reason is missing.
    """
    return _execute(approval, ApprovalState.ALONE, lambda _: "", by=by, reason=reason, conf=conf)


def decline(approval: int, *, by: str, reason: str) -> Decision:
    """Decline a request, so that its action is not executed. The person who made the request may decline it, too.

    Raises:
        ApprovalRefused: the person or the reason is missing.
    """
    _require(by, reason)

    def work() -> Decision:
        row = requests.lock(approval)
        if (why := _why_closed(row)) or row is None:
            return NotDone(why)
        requests.decide(row, ApprovalState.DECLINED, by=by, reason=reason)
        return Done("The request is declined. Nothing was done.")

    return rows.in_transaction(work)


def end_expired() -> int:
    """Give the state expired to requests whose time for approval is over; return how many requests."""
    return sum(rows.in_transaction(partial(_expire, approval)) for approval in requests.expired())


def changed_since(row: Approval) -> str:
    """Return a text that says what changed since a request, so that it is void; empty: nothing has changed."""
    try:
        return _difference(row, requests.action_of(row))
    except PayloadUnreadable as error:
        return str(error)


def _execute(  # noqa: PLR0913  # arguments are passed by name
    approval: int, state: ApprovalState, may: Callable[[Approval], str], *, by: str, reason: str, conf: Conf
) -> Decision:
    _require(by, reason)
    found = Approval.objects.filter(pk=approval).first()
    if (why := _why_closed(found)) or found is None:
        return NotDone(why)
    if why := may(found):
        return NotDone(f"Nothing was done: {why}")
    try:
        action = requests.action_of(found)
        requests.seal(action)  # before the transaction, because AWS KMS may have to unwrap keys
    except PayloadUnreadable as error:
        return NotDone(f"Nothing was done: {error}")
    prepared = perform.prepare(action, conf)
    try:
        done = rows.in_transaction(partial(_act, approval, state, by, reason, conf, prepared))
    except RedriveError as error:
        return rows.in_transaction(partial(_void, approval, str(error)))
    if isinstance(done, NotDone):
        return done
    done.after_commit()
    return Done(done.summary)


def _act(  # noqa: PLR0913, PLR0917  # bound by its only caller
    approval: int, state: ApprovalState, by: str, reason: str, conf: Conf, prepared: Plan | None
) -> Performed | NotDone:
    row = requests.lock(approval)
    if (why := _why_closed(row)) or row is None:
        return NotDone(why)
    action = requests.action_of(row)
    _lock(action)
    if why := _difference(row, action):
        requests.end(row, ApprovalState.VOID, why)
        return NotDone(f"Nothing was done: the request is void. {why}")
    requests.decide(row, state, by=by, reason=reason)
    signed = signed_by_both(row.by, by) if state is ApprovalState.APPROVED else signed_alone(by)
    done = perform.perform(Order(row.pk, action, signed, row.reason, row.asked_at, prepared), conf)
    requests.finish(row, done.summary)
    return done


def _lock(action: RequestedAction) -> None:
    """Lock the rules or letters that the action changes.

    All other transactions lock them in the same order; another order would lead to deadlocks.
    """
    if action.kind.is_about_rules:
        rules.lock()
    if action.letters:
        decisions.lock_letters(action.letters, need_lane=False)


def _difference(row: Approval, action: RequestedAction) -> str:
    """Return a text that says what changed since the request; empty: nothing has changed.

    The text counts only messages of the request's DLQs, because its readers may not see other DLQs. If the action now
    also changes messages of other DLQs, the request is void, too.
    """
    try:
        now = frozen.freeze(action)
    except frozen.Vanished as gone:
        return str(gone)
    if now.digest == bytes(row.digest):
        return ""
    since = f"after {row.asked_at:%Y-%m-%d %H:%M:%S} UTC, when it was requested"
    if row.messages is None:
        what = "the rules" if action.kind.is_about_rules else "the settings"
        return f"Somebody changed {what} {since}. Request it again."
    count = sum(now.messages.get(dlq, 0) for dlq in row.dlq_ids)
    told = f"there were {row.messages:,}, and there are {count:,}" if count != row.messages else f"still {count:,}"
    return f"At least one message changed, appeared or vanished {since}: {told}. Request it again."


def _void(approval: int, why: str) -> NotDone:
    """End a request whose action failed. `why`: the error. The caller has rolled back the changes of the action."""
    row = requests.lock(approval)
    if (closed := _why_closed(row)) or row is None:
        return NotDone(closed)
    requests.end(row, ApprovalState.VOID, why)
    return NotDone(f"Nothing was done: the request is void. {why}")


def _expire(approval: int) -> bool:
    row = requests.lock(approval)
    if row is None or row.state != ApprovalState.OPEN or row.expires_at > lanes.database_now():
        return False
    requests.end(row, ApprovalState.EXPIRED, _EXPIRED)
    return True


def _why_closed(row: Approval | None) -> str:
    if row is None:
        return "There is no such request."
    if row.state != ApprovalState.OPEN:
        who = f" by {row.decided_by}" if row.decided_by else ""
        at = f" at {row.ended_at:%Y-%m-%d %H:%M:%S} UTC" if row.ended_at else ""
        return f"Nothing was done: the request was decided before. It is {row.get_state_display()}{who}{at}."
    if row.expires_at <= lanes.database_now():
        return f"Nothing was done: the request expired at {row.expires_at:%Y-%m-%d %H:%M} UTC. Request it again."
    return ""


def _require(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip():
        raise ApprovalRefused("Nothing was done: a decision needs a person and a reason.")
    if not is_one_name(by):
        raise ApprovalRefused(
            "Nothing was done: give one person's name. It cannot contain 'approved by' or 'without approval'."
        )
