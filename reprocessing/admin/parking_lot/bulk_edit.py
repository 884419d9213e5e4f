"""The pages that edit selected messages, or all messages of a filter: a form, then a preview that asks for the reason.

The preview page keeps the JSON Patch in a signed hidden field, so that exactly the previewed patch is applied. Messages
that change after the preview are not edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib import admin, messages
from django.core import signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing.admin.approvals import requested
from reprocessing.admin.editing.edit_forms import EditConfirmForm
from reprocessing.admin.messages import show_payload
from reprocessing.admin.parking_lot import edit_examples, message_list
from reprocessing.admin.parking_lot.bulk_edit_forms import BulkEditForm
from reprocessing.admin.parking_lot.confirm_forms import filter_of_query
from reprocessing.admin.parking_lot.decision import unpack_messages
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import InvalidFilter, PayloadUnreadable, SelectionChanged
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkAction, BulkActionKind, Letter
from reprocessing.pipeline.parking_lot import start_bulk_action
from reprocessing.store.approvals import frozen, limits
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions, filtered_letters
from reprocessing.store.payloads import viewed_content

#: The permissions that an edit of many messages needs.
TAKES: Final = ("reprocessing.view_parkedletter", "reprocessing.edit_parkedletter", "reprocessing.view_payload")
_PREVIEWED: Final = "reprocessing.bulk_edit.previewed"
#: Seconds for which a preview can be confirmed.
_VALID: Final = 12 * 3_600
_OLD: Final = "Nothing was done: this page is too old, or belongs to somebody else. Select the messages again."
_LOOKED: Final = "Previewed an edit of many messages."
_MASKED: Final = (
    "An edit could reveal masked values of these messages, so it needs the permission to reveal masked values. Or "
    "filter by a DLQ without masked fields."
)


@dataclass(frozen=True, slots=True)
class _Page:
    """The messages that a request edits: all that match the filter, or selected messages among them.

    Attributes:
        criteria: the filter. query: the filter as a URL query.
        letters: ids of the selected messages; empty: all messages that match the filter.
    """

    request: HttpRequest
    criteria: MessageFilter
    query: str
    letters: tuple[int, ...]

    @property
    def back(self) -> str:
        """Return the URL of the list of all messages that match the filter."""
        return message_list.address_of(replace(self.criteria, letters=None))


@post_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the form or the preview, or start the bulk action. The pressed button decides which of them.

    Raises:
        PermissionDenied: the person may not edit parked messages, or not see payloads.
    """
    if not request.user.has_perms(TAKES):
        raise PermissionDenied
    if "do" in request.POST or "back" in request.POST:
        return _confirmed(request)
    try:
        at = _selected(request)
    except InvalidFilter as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(_list(request.POST.get("query", "")))
    if "look" not in request.POST:
        return _form(at, BulkEditForm())
    form = BulkEditForm(request.POST)
    return _first_preview(at, form.cleaned_data["wanted"]) if form.is_valid() else _form(at, form)


def _selected(request: HttpRequest, signed: Mapping[str, Any] | None = None) -> _Page:
    """Return the messages to edit. `signed`: content of the preview's signed field; None: they come from the list.

    Raises:
        InvalidFilter: edits are not possible with this filter, or nothing is selected.
    """
    query = str(signed["query"]) if signed else request.POST.get("query", "")
    if signed:
        letters = tuple(signed["letters"])
    elif request.POST.get("scope") == "all" or "whole" in request.POST:
        letters = ()
    else:
        letters = _picked(request)
    criteria = message_list.allowed(filter_of_query(query), request)
    if viewed_content.masks_fields(criteria.dlq) and not show_payload.may_reveal(request):
        raise InvalidFilter(_MASKED)
    criteria = replace(criteria, letters=letters or None)
    start_bulk_action.require_decidable(BulkActionKind.EDIT, criteria)
    return _Page(request, criteria, query, letters)


def _picked(request: HttpRequest) -> tuple[int, ...]:
    text = request.POST.get("letters") or ",".join(request.POST.getlist("pick"))
    if not text:
        raise InvalidFilter("Nothing was done: select messages, or choose all that match the filter.")
    try:
        letters = tuple(sorted(unpack_messages(text)))
    except ValidationError as error:
        raise InvalidFilter(" ".join(error.messages)) from error
    selected = Letter.objects.filter(pk__in=letters)
    if selected.exclude(pk__in=visible_rows.rows(request, selected).values("pk")).exists():
        raise Http404
    return letters


def _first_preview(at: _Page, patch: JsonPatch) -> HttpResponse:
    opened = lanes.database_now()
    return _preview(at, patch, {"token": str(uuid4()), "opened": opened.isoformat()})


def _confirmed(request: HttpRequest) -> HttpResponse:
    """Start the bulk action that the preview showed. Show the form again if the person chose to continue editing."""
    signed = _signed(request)
    if signed is None:
        messages.error(request, _OLD)
        return HttpResponseRedirect(reverse("admin:reprocessing_parkedletter_changelist"))
    try:
        at = _selected(request, signed)
        if "back" in request.POST:
            return _form(at, BulkEditForm(initial={"patch": signed["patch"]}))
        return _start(at, JsonPatch.parse(signed["patch"]), signed)
    except InvalidFilter as error:
        messages.error(request, f"Nothing was done: {error}")
        return HttpResponseRedirect(_list(str(signed["query"])))


def _start(at: _Page, patch: JsonPatch, signed: dict[str, Any]) -> HttpResponse:
    request = at.request
    form = EditConfirmForm(request.POST, may_replay=_may_release(request), touched=signed["touched"])
    if not form.is_valid():
        return _preview(at, patch, signed, form)
    given = form.cleaned_data
    wanted = BulkEdit(
        patch, release=given["then"] == "replay", new_keys=given["new_key"], changes_keys=bool(given.get("knowing"))
    )
    try:
        is_new = bulk_actions.create(
            UUID(signed["token"]), BulkActionKind.EDIT, at.criteria, wanted.arguments(), by=request.user.get_username(),
            reason=given["reason"], opened=datetime.fromisoformat(signed["opened"]), previewed=signed["count"],
        )  # fmt: skip
    except SelectionChanged as changed:
        return _preview_again(at, patch, signed, form, matching=changed.matching)
    except ApprovalNeeded as needed:
        address, sentence = requested.request_approval(request, needed, given["reason"])
        messages.success(request, sentence)
        return HttpResponseRedirect(address)
    began = visible_rows.rows(request, BulkAction.objects).filter(token=signed["token"]).first()
    if began is None:
        raise Http404
    if not is_new:
        messages.warning(request, "No new bulk action was started: this page was submitted before.")
    return HttpResponseRedirect(reverse("admin:reprocessing_bulkaction_change", args=[began.pk]))


def _preview_again(
    at: _Page, patch: JsonPatch, signed: dict[str, Any], form: EditConfirmForm, *, matching: int
) -> HttpResponse:
    """Show the preview again, because the number of matching messages is no longer the number that the person saw.

    `matching`: how many messages match now.
    """
    opened = datetime.fromisoformat(signed["opened"])
    why = start_bulk_action.why_changed(
        BulkActionKind.EDIT, at.criteria, previewed=signed["count"], matching=matching, since=opened
    )
    messages.error(at.request, f"Nothing was done: {why}")
    return _preview(at, patch, {**signed, "opened": lanes.database_now().isoformat()}, form)


def _form(at: _Page, form: BulkEditForm) -> HttpResponse:
    n = filtered_letters.count_letters(at.criteria)
    context = _context(at, "Edit parked messages", n) | {"form": form, "picked": _packed(at)}
    return TemplateResponse(at.request, "reprocessing/admin/bulk_edit.html", context)


def _preview(at: _Page, patch: JsonPatch, signed: dict[str, Any], form: EditConfirmForm | None = None) -> HttpResponse:
    request = at.request
    n = filtered_letters.count_letters(at.criteria)
    try:
        found = edit_examples.check(at.criteria, BulkEdit(patch))
    except PayloadUnreadable as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(at.back)
    touched = [sentence for sentence, _ in found.touched]
    carried = {
        **signed, "user": request.user.pk, "query": at.query, "letters": at.letters, "patch": patch.text,
        "touched": touched, "count": n,
    }  # fmt: skip
    about = frozen.count_by_dlq(at.criteria) if limits.is_any_limited() else {}
    context = _context(at, "Preview of the edit", n) | edit_examples.context(request, found, patch, n, _LOOKED) | {
        "form": form or EditConfirmForm(may_replay=_may_release(request), touched=touched),
        "previewed": signing.dumps(carried, salt=_PREVIEWED, compress=True),
        "notice": requested.notice(request, about), "request_button": requested.BUTTON,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/bulk_edit_preview.html", context)


def _context(at: _Page, title: str, n: int) -> dict[str, Any]:
    sentence = at.criteria.sentence(message_list.names_of(at.request, at.criteria), single=n == 1)
    return admin.site.each_context(at.request) | {
        "title": title, "count": n, "counted": filtered_letters.counted(n), "sentence": sentence, "back": at.back,
        "query": at.query, "whole": not at.letters,
    }  # fmt: skip


def _packed(at: _Page) -> str:
    return ",".join(f"{letter}@0@0" for letter in at.letters)


def _signed(request: HttpRequest) -> dict[str, Any] | None:
    """Return the content of the signed hidden field; None: it is invalid, too old, or was made for another person."""
    try:
        signed: dict[str, Any] = signing.loads(request.POST.get("previewed", ""), salt=_PREVIEWED, max_age=_VALID)
    except signing.BadSignature:
        return None
    return signed if signed["user"] == request.user.pk else None


def _may_release(request: HttpRequest) -> bool:
    return request.user.has_perm("reprocessing.release_parkedletter")


def _list(query: str) -> str:
    try:
        return message_list.address_of(filter_of_query(query))
    except InvalidFilter:
        return reverse("admin:reprocessing_parkedletter_changelist")
