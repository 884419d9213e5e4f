"""List, approve and decline requests for approval. Store such a request if a change needs a second person."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router

from reprocessing import conf
from reprocessing.api.approvals.approval_answers import (
    ApprovalDetail,
    ApprovalNeededAnswer,
    ApprovalPage,
    ApprovalView,
    DecisionAboutApproval,
)
from reprocessing.api.site import paging
from reprocessing.api.site.caller import Caller, caller_of
from reprocessing.api.site.document import changes, reads
from reprocessing.api.site.fields import Change, Request
from reprocessing.api.site.guard import acts
from reprocessing.api.site.paging import After, Limit
from reprocessing.api.site.problems import Problem, conflict
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.approvals.requested_action import ActionKind, ApprovalNeeded, permissions_for
from reprocessing.models import Approval, ApprovalState
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals import request as requesting
from reprocessing.pipeline.approvals.decide import Decision, NotDone
from reprocessing.store.approvals import people

router: Final = Router()
_TAG: Final = "Approvals"


class ApprovalQuery(Request):
    """Query parameters of the list of requests for approval."""

    state: Literal["open", "approved", "declined", "expired", "void", "alone"] | None = None
    limit: Limit = paging.DEFAULT
    after: After = ""


def request_approval(request: HttpRequest, needed: ApprovalNeeded) -> HttpResponse:
    """Store a request for approval of a change that needs a second person. Return status 202 with the request's path.

    django-ninja calls this for an operation that raised `ApprovalNeeded`.
    """
    reason, by = str(json.loads(request.body)["reason"]), caller_of(request).by
    row = requesting.request(needed, by=by, reason=reason, lasts=conf.current().approval_life)
    until = f"{row.expires_at:%Y-%m-%d %H:%M} UTC"
    says = [f"Nothing was done yet: {row.title} needs a second person. Approval is requested. It expires at {until}."]
    address = f"/api/v1/approvals/{row.pk}"
    answer = ApprovalNeededAnswer(
        dry_run=False,
        changed=False,
        says=says,
        needs_approval=True,
        approval=ApprovalView.of(row),
        approval_url=address,
    )
    return JsonResponse(answer.model_dump(), status=HTTPStatus.ACCEPTED)


@reads(router, "/approvals", Scope.APPROVALS_READ, ApprovalPage, tag=_TAG)
def list_approvals(request: HttpRequest, query: Query[ApprovalQuery]) -> ApprovalPage:
    """List requests for approval, the newest first."""
    rows = caller_of(request).rows(Approval.objects)
    rows = rows if query.state is None else rows.filter(state=query.state)
    found, following = paging.page_by_id(rows, after=query.after, limit=query.limit)
    return ApprovalPage(items=[ApprovalView.of(row) for row in found], next=following)


@reads(router, "/approvals/{int:approval}", Scope.APPROVALS_READ, ApprovalDetail, tag=_TAG)
def get_approval(request: HttpRequest, approval: int) -> ApprovalDetail:
    """Show a request for approval, and what changed since it was made."""
    row = _row(request, approval)
    changed = decide.changed_since(row) if row.state == ApprovalState.OPEN else ""
    return ApprovalDetail(**ApprovalView.of(row).model_dump(), void_because=changed or None)


@changes(router, "/approvals/{int:approval}/approve", Scope.APPROVALS_DECIDE, DecisionAboutApproval, tag=_TAG)
def approve(request: HttpRequest, approval: int, change: Change) -> DecisionAboutApproval:
    """Approve a request as the second person.

    The change is made at once, exactly as requested. The audit log gets both names. Send the token of a user who has
    the permissions to make the change, and who did not request it. If these permissions have scopes, the token needs
    the scopes, too.
    """
    row, caller = _row(request, approval), caller_of(request)
    user = _person(caller)
    if people.is_same_person(row.by, caller.by):
        raise Problem(
            HTTPStatus.FORBIDDEN, f"Nothing was done: {row.by} made the request, so somebody else must approve it."
        )
    _require(caller, user, row)

    def act() -> Decision:
        return decide.approve(row.pk, by=caller.by, reason=change.reason, conf=conf.current())

    return _decide(request, row, change, act, "Approval makes the change at once. The audit log gets both names.")


@changes(router, "/approvals/{int:approval}/decline", Scope.APPROVALS_DECIDE, DecisionAboutApproval, tag=_TAG)
def decline(request: HttpRequest, approval: int, change: Change) -> DecisionAboutApproval:
    """Decline a request for approval.

    The change is not made. Send the token of the user who requested the change, or of a user who has the permissions to
    make the change; this user's token needs the scopes of these permissions.
    """
    row, caller = _row(request, approval), caller_of(request)
    user = _person(caller)
    if not people.is_same_person(row.by, caller.by):
        _require(caller, user, row)

    def act() -> Decision:
        return decide.decline(row.pk, by=caller.by, reason=change.reason)

    return _decide(request, row, change, act, "The request would end, and the change would not be made.")


def _row(request: HttpRequest, approval: int) -> Approval:
    return caller_of(request).row(Approval.objects, "approval", pk=approval)


def _person(caller: Caller) -> User:
    if caller.token.user is None:
        why = "Nothing was done: only people decide about approvals, and this is a token of teams. Send a user's token."
        raise Problem(HTTPStatus.FORBIDDEN, why)
    return caller.token.user


def _require(caller: Caller, user: User, row: Approval) -> None:
    """Check that the user has the permissions for the requested change, and the token the scopes of these permissions.

    Raises:
        Problem: a permission or a scope is missing.
    """
    needed = permissions_for(ActionKind(row.action), row.arguments)
    missing = [name for name in needed if not user.has_perm(name)]
    if missing:
        lacks = ", ".join(missing)
        why = f"Nothing was done: to decide about the request, the token's user needs the permissions {lacks}."
        raise Problem(HTTPStatus.FORBIDDEN, why)
    for scope in Scope:
        if scope.permission in needed:
            caller.require(scope)


def _decide(
    request: HttpRequest, row: Approval, change: Change, act: Callable[[], Decision], would: str
) -> DecisionAboutApproval:
    if row.state != ApprovalState.OPEN:
        raise conflict(f"The request is {row.get_state_display()}.")
    if not acts(request, confirm=change.confirm):
        changed = decide.changed_since(row)
        says = [would, *([f"The request is void: {changed}"] if changed else [])]
        return DecisionAboutApproval(dry_run=True, changed=False, says=says, approval=ApprovalView.of(row))
    done = act()
    if isinstance(done, NotDone):
        raise conflict(done.why.removeprefix("Nothing was done: "))
    row.refresh_from_db()
    return DecisionAboutApproval(dry_run=False, changed=True, says=[done.summary], approval=ApprovalView.of(row))
