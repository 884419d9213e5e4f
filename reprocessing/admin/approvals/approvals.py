"""The list of requests for approval, and the pages on which a second person approves or declines a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from reprocessing import conf
from reprocessing.admin.messages import comparison, show_payload
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import edit_examples
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.buttons import Button
from reprocessing.admin.site.confirmed_action import Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import Page, RecordsAdmin
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction, permissions_for
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.parking_lot.bulk_edit import PATCH, BulkEdit
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Approval, ApprovalState, AuditAct, AuditEntry, DeadLetterQueue
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals.decide import Decision
from reprocessing.store.approvals import people, requests
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.payloads import viewed_content

#: A person with this permission, and with the permission for a requested action, may do the action without approval.
ACT_ALONE: Final = "reprocessing.act_alone"


@dataclass(frozen=True, slots=True)
class _Choice:
    """A kind of decision about a request for approval: approve, decline, or act without approval.

    Attributes:
        label: the label of the button.
        says: a text for the page that asks for the reason: what the decision does.
        act: the function that makes the decision. It takes the request's id, the user's name and the reason.
        alone: whether the requested change is made without a second person. This needs the permission `ACT_ALONE`.
    """

    label: str
    says: str
    act: Callable[[int, str, str], Decision]
    alone: bool = False


_CHOICES: Final[Mapping[str, _Choice]] = {
    "approve": _Choice(
        "Approve",
        "The change is made at once, exactly as shown here. The audit log gets both names.",
        lambda pk, by, reason: decide.approve(pk, by=by, reason=reason, conf=conf.current()),
    ),
    "decline": _Choice(
        "Decline",
        "The change is not made. The request ends.",
        lambda pk, by, reason: decide.decline(pk, by=by, reason=reason),
    ),
    "alone": _Choice(
        "Act without approval",
        "For emergencies. The change is made at once. The audit log and a notification say that nobody approved it.",
        lambda pk, by, reason: decide.act_alone(pk, by=by, reason=reason, conf=conf.current()),
        alone=True,
    ),
}


@admin.register(Approval)
class Approvals(RecordsAdmin):
    """The list and the pages of requests for approval."""

    list_display = ("id", "state", "title", "messages", "by", "asked_at", "expires_at", "decided_by")
    list_filter = ("state",)
    labels = {  # noqa: RUF012  # Django's own way
        "title": "Action", "by": "Requested by", "asked_at": "Requested at", "expires_at": "Expires at",
        "decided_by": "Decided by", "decision_reason": "Reason of the decision", "messages": "Messages",
        "outcome": "Result",
    }  # fmt: skip
    fields = (
        "title", "state", "what", "by", "reason", "asked_at", "expires_at", "changed", "decided_by", "decision_reason",
        "ended_at", "outcome",
    )  # fmt: skip
    readonly_fields = ("what", "changed")

    @admin.display(description="What is done")
    def what(self, row: Approval) -> SafeString:
        """Return, as HTML, the description of the requested change. It was stored when the request was made."""
        pairs = ((visible(str(label)), visible(str(text))) for label, text in row.preview)
        return format_html_join("", "<div>{}: <strong>{}</strong></div>", pairs)

    @admin.display(description="Changed since request")
    def changed(self, row: Approval) -> str:
        """Return what has changed since the request was made, so that the request cannot be approved any more.

        "no": nothing has changed. "-": the request has ended.
        """
        return visible(decide.changed_since(row) or "no") if row.state == ApprovalState.OPEN else "-"

    def pages(self) -> Iterable[Page]:
        """Return the pages that decide about a request, and the page that shows what a requested edit changes."""
        decisions = ((f"<int:approval>/{name}", _page, name, {"name": name}) for name in _CHOICES)
        return (*decisions, ("<int:approval>/difference", post_only(_difference), "difference", {}))

    def buttons(self, request: HttpRequest, row: Approval) -> Iterable[Button]:
        """Return a button for each kind of decision if the request is open; no buttons if the request has ended."""
        if row.state != ApprovalState.OPEN:
            return
        for name, choice in _CHOICES.items():
            address = reverse(f"admin:reprocessing_approval_{name}", args=[row.pk])
            closed = "" if _may(request, row, choice) else "You may not do this"
            if name == "approve" and not closed and people.is_same_person(row.by, request.user.get_username()):
                closed = "You made the request: somebody else must approve it"
            yield Button(f"{choice.label}…", address, closed, grave=choice.alone)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the request. For a requested edit, a button leads people who may see payloads to the changes."""
        row = self.get_object(request, object_id)
        edits = row is not None and (row.body is not None or PATCH in row.arguments) and request.user.has_perms(_SHOWS)
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "shows_edit": edits})


_SHOWS: Final = ("reprocessing.view_payload", "reprocessing.view_letter")


def _may(request: HttpRequest, row: Approval, choice: _Choice) -> bool:
    """Return whether this person may make this decision about the request.

    The person needs the permission for the requested action. The person who made the request may always decline it.
    """
    if choice.label == _CHOICES["decline"].label and people.is_same_person(row.by, request.user.get_username()):
        return True
    needed = [*permissions_for(ActionKind(row.action), row.arguments), *([ACT_ALONE] if choice.alone else [])]
    return request.user.has_perms(needed)


def _page(request: HttpRequest, approval: int, name: str) -> HttpResponse:
    choice = _CHOICES[name]
    row = visible_rows.row_or_404(request, Approval.objects, approval)
    if not _may(request, row, choice):
        raise PermissionDenied
    act = partial(_act, approval, choice)
    permission = "reprocessing.view_approval"
    return confirmed_action.page(request, permission=permission, question=partial(_question, approval, choice), act=act)


def _question(approval: int, choice: _Choice) -> Question:
    row = Approval.objects.get(pk=approval)
    closed = row.state != ApprovalState.OPEN
    changed = "" if closed else decide.changed_since(row)
    return Question(
        title=f"{choice.label}: {row.title}",
        button=choice.label,
        says=(choice.says, *([f"The request is void: {changed}"] if changed else [])),
        seen=str(approval),
        back=reverse("admin:reprocessing_approval_change", args=[approval]),
        about=str(row),
        facts=(*((label, text) for label, text in row.preview), ("Requested by", f"{row.by}: {row.reason}")),
        idle=f"The request is {row.get_state_display()}." if closed else "",
    )


def _act(approval: int, choice: _Choice, given: Mapping[str, Any], by: str) -> Done | NotDone:
    done = choice.act(approval, by, given["reason"])
    if isinstance(done, decide.NotDone):
        return NotDone(done.why.removeprefix("Nothing was done: "))
    return Done(reverse("admin:reprocessing_approval_change", args=[approval]), done.summary)


def _difference(request: HttpRequest, approval: int) -> HttpResponse:
    """Show what a requested edit changes in the message. The audit log records who saw it.

    Raises:
        Http404: the request is not an edit, or the message cannot be read any more.
    """
    row = visible_rows.row_or_404(request, Approval.objects, approval)
    if not request.user.has_perms(("reprocessing.view_approval", *_SHOWS)):
        raise PermissionDenied
    try:
        action = requests.action_of(row)
        if PATCH in action.arguments:
            return _bulk_difference(request, row, action)
        current = message_edits.read_letter(row.letters[0]) if row.letters else None
    except PayloadUnreadable as error:
        raise Http404(str(error)) from error
    if action.body is None or action.attributes is None or current is None:
        raise Http404
    AuditEntry.objects.create(
        act=AuditAct.REVEALED, letter_id=current.letter_id, dlq_id=current.dlq_id, by=request.user.get_username(),
        reason=f"Looked at the edit of approval {approval}.",
    )  # fmt: skip
    dlq = DeadLetterQueue.objects.get(pk=current.dlq_id)
    shown = (
        viewed_content.masked(dlq, body, unpack_attributes(attributes))
        for body, attributes in ((current.body, current.attributes), (action.body, action.attributes))
    )
    before, after = ((found.body, found.attributes) for found in shown)
    context = admin.site.each_context(request) | {
        "title": "Difference", "original": row, "changes": comparison.differences(before, after),
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/approval_difference.html", context)


def _bulk_difference(request: HttpRequest, row: Approval, action: RequestedAction) -> HttpResponse:
    """Show the patch of a requested bulk edit, to which messages it can be applied, and what it changes in some.

    Only messages of the DLQs that are stored with the request are read, because this person sees these DLQs, and may
    not see others. The patch is shown if the person may reveal masked values, or if no fields of the DLQ are masked.
    """
    criteria = replace(MessageFilter.read(action.arguments["filter"]), dlqs=tuple(row.dlq_ids))
    wanted = BulkEdit.read(action.arguments)
    found = edit_examples.check(criteria, wanted)
    shows = show_payload.may_reveal(request) or not viewed_content.masks_fields(criteria.dlq)
    why = f"Looked at the edit of approval {row.pk}."
    context = admin.site.each_context(request) | {
        "title": "Difference", "original": row, "patch": visible(wanted.patch.text) if shows else "",
        **edit_examples.context(request, found, wanted.patch, row.messages or 0, why),
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/approval_difference.html", context)
