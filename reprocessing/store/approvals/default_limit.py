"""Set the default approval limit, for DLQs without a limit of their own.

An action (of a person, such as a release) about more messages than the limit needs a second person's approval.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from reprocessing.domain.approvals.requested_action import ALL, ActionKind, RequestedAction
from reprocessing.models import ApprovalDefault, AuditAct, AuditEntry
from reprocessing.models.audit import ALL_DLQS
from reprocessing.store import rows
from reprocessing.store.approvals import guard, limits
from reprocessing.store.approvals.guard import Cover

_TITLE: Final = "Need a second person less often, for all DLQs"


def set_default(above: int | None, *, by: str, reason: str, approval: Cover = None) -> bool:
    """Set the approval limit of DLQs without a limit of their own; return whether it changed. Write an audit log entry.

    `above`: the limit, a number of messages; None: no limit. `approval`: as in `guard.check`.

    Raises:
        ApprovalNeeded: the change lets one person do more, so it needs a second person's approval.
    """
    return rows.in_transaction(partial(_set, above, by, reason, approval))


def _set(above: int | None, by: str, reason: str, approval: Cover) -> bool:
    before = limits.default_limit()
    if before == above:
        return False
    if limits.is_looser(above, before):
        action = RequestedAction(ActionKind.CHANGE_SETTINGS, _TITLE, {"dlq": None, "fields": {"above": above}})
        guard.check(action, {ALL: None}, by=by, approval=approval)
    if above is None:
        ApprovalDefault.objects.all().delete()
    else:
        ApprovalDefault.objects.update_or_create(name=ALL_DLQS, defaults={"above": above})
    act = AuditAct.ADDED if before is None else AuditAct.CHANGED
    AuditEntry.objects.create(act=act, by=by, reason=reason, before=_audit_values(before), after=_audit_values(above))
    return True


def _audit_values(above: int | None) -> dict[str, Any]:
    return {"approvals": ALL_DLQS, "above": above}
