"""The pages that edit a parked message: first the form, then a preview of the changes, which asks for the reason.

The preview page keeps the edited message, and the state of the message when the form was opened, in signed hidden
fields, not in the session. The form shows the payload, so the audit log records who opens the form.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, assert_never

from django.contrib import admin, messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.approvals import requested
from reprocessing.admin.editing.edit_forms import EditConfirmForm, EditForms
from reprocessing.admin.messages import comparison, message_page, show_payload
from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import pack_attributes, unpack_attributes
from reprocessing.domain.parking_lot.edit_policy import SelectorsByPurpose
from reprocessing.models import Letter
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, ChangedMeanwhile, Edited, SeenLetter, Unsendable
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.ordering import key_messages
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.parking_lot.message_edits import EditableLetter
from reprocessing.store.payloads import viewed_content

_OPENED: Final = "reprocessing.edit.opened"
_WRITTEN: Final = "reprocessing.edit.written"
#: Seconds for which an open page can be submitted.
_VALID: Final = 12 * 3_600
_AS_IT_IS: Final = "surrogateescape"  # this error handler keeps bytes that are not UTF-8
_MASKED: Final = (
    "This message has masked values. Editing shows them, so it needs the permission to reveal masked values."
)
_TOO_OLD: Final = "Nothing was done: this page is too old, or belongs to somebody else. Open the message again."


@dataclass(frozen=True, slots=True)
class _Page:
    """The message that a request edits.

    Attributes:
        current: the message as it is now.
        seen: the message as it was when the form was opened: since when it was parked, and its last edit.
    """

    request: HttpRequest
    letter: Letter
    current: EditableLetter = field(repr=False)
    seen: SeenLetter

    @property
    def keys(self) -> SelectorsByPurpose:
        """Return the DLQ's settings that say in which part of a message the ordering key and other keys are."""
        return edit.keys_of(self.letter.dlq)

    def has_changed(self) -> bool:
        """Return whether the message was edited, released, or parked again after the form was opened."""
        now = (self.current.state, self.current.finished_at, self.current.revision)
        return now != (LetterState.PARKED, self.seen.finished_at, self.seen.revision)


@post_only
def page(request: HttpRequest, letter: int) -> HttpResponse:
    """Show the form or the preview, or save the edit. The pressed button decides which of them.

    Raises:
        PermissionDenied: the person may not edit parked messages, or not see payloads.
    """
    may = ("reprocessing.view_parkedletter", "reprocessing.edit_parkedletter", "reprocessing.view_payload")
    if not request.user.has_perms(may):
        raise PermissionDenied
    found = visible_rows.row_or_404(request, Letter.objects.select_related("dlq"), letter)
    try:
        current, is_masked = message_edits.read_letter(letter), viewed_content.has_masked_values(found)
    except PayloadUnreadable as error:
        return _refuse(request, found, str(error))
    if current is None:
        return _refuse(request, found, "The payload was deleted: there is nothing to edit.")
    if is_masked and not show_payload.may_reveal(request):
        return _refuse(request, found, _MASKED)
    if is_masked and not ({"do", "back", "look"} & request.POST.keys()) and not show_payload.reveal_reason(request):
        return _ask_reason(request, found)
    if "do" in request.POST or "back" in request.POST:
        return _submit_preview(request, found, current)
    return _show_preview(request, found, current) if "look" in request.POST else _open(request, found, current)


def _open(request: HttpRequest, letter: Letter, current: EditableLetter) -> HttpResponse:
    if current.state != LetterState.PARKED or current.finished_at is None:
        why = f"This message is not parked: it is {labels.state(current.state)}. Only parked messages can be edited."
        return _refuse(request, letter, why)
    show_payload.payload_to_send(letter, request, show_payload.OPENED)
    at = _Page(request, letter, current, SeenLetter(current.finished_at, current.revision))
    return _form(at, EditForms(current, conf.current().marks, at.keys))


def _ask_reason(request: HttpRequest, letter: Letter) -> HttpResponse:
    """Ask for the reason of revealing masked values, before the form of an edit shows them."""
    form = show_payload.RevealForm(request.POST if "reveal_reason" in request.POST else None)
    context = {"title": message_page.title_of("Edit", letter, request.user), "original": letter, "reveal": form}
    return TemplateResponse(
        request, "reprocessing/admin/reveal_to_edit.html", admin.site.each_context(request) | context
    )


def _show_preview(request: HttpRequest, letter: Letter, current: EditableLetter) -> HttpResponse:
    opened = _signed(request, "opened", _OPENED, letter)
    if opened is None:
        return _refuse(request, letter, _TOO_OLD)
    at = _Page(request, letter, current, _seen(opened))
    draft = EditForms(current, conf.current().marks, at.keys, request.POST)
    if at.has_changed():
        return _form(at, draft, changed=True)
    to = draft.alteration()
    against = edit.problems(current, to, conf.current().marks) if to else []
    if to is None or against:
        return _form(at, draft, against)
    return _preview(
        at, to, EditConfirmForm(may_replay=_may_replay(request), touched=edit.changed_keys(current, to, at.keys))
    )


def _submit_preview(request: HttpRequest, letter: Letter, current: EditableLetter) -> HttpResponse:
    """Save the previewed edit.

    Show the form again if the person chose to continue editing, and the preview again if something is wrong.
    """
    signed = _signed(request, "written", _WRITTEN, letter)
    if signed is None:
        return _refuse(request, letter, _TOO_OLD)
    at = _Page(request, letter, current, _seen(signed))
    to = Alteration(signed["body"].encode(errors=_AS_IT_IS), unpack_attributes(signed["attributes"].encode()))
    if "back" in request.POST:
        return _form(at, EditForms(current, conf.current().marks, at.keys, written=to), changed=at.has_changed())
    form = EditConfirmForm(
        request.POST, may_replay=_may_replay(request), touched=edit.changed_keys(current, to, at.keys)
    )
    if not form.is_valid():
        return _preview(at, to, form)
    try:
        return _do(at, to, form)
    except ApprovalNeeded as needed:
        address, sentence = requested.request_approval(request, needed, form.cleaned_data["reason"])
        messages.success(request, sentence)
        return HttpResponseRedirect(address)


def _do(at: _Page, to: Alteration, form: EditConfirmForm) -> HttpResponse:
    given = form.cleaned_data
    key = str(uuid.uuid4()) if given["new_key"] else None
    done = edit.edit_letter(
        at.letter.pk, at.seen, Alteration(to.body, to.attributes, key), names=conf.current().marks,
        by=at.request.user.get_username(), reason=given["reason"], replay=given["then"] == "replay",
    )  # fmt: skip
    match done:
        case Edited(no, left):
            _show_result(at.request, no, left, replay=given["then"] == "replay")
            stays = given["then"] != "replay" and at.request.user.has_perm("reprocessing.view_parkedletter")
            page = "parkedletter" if stays else "letter"  # the page with the actions on the message
            return HttpResponseRedirect(reverse(f"admin:reprocessing_{page}_change", args=[at.letter.pk]))
        case ChangedMeanwhile(why):
            return _preview(at, to, form, f"Nothing was done: {why}.")
        case Unsendable(problems):
            return _preview(at, to, form, f"Nothing was done. {' '.join(problems)}")
        case _ as never:
            assert_never(never)


def _show_result(request: HttpRequest, no: int, left: str, *, replay: bool) -> None:
    if not replay:
        messages.success(request, f"Edit {no} is saved. The message stays parked until somebody releases it.")
    elif left:
        messages.warning(request, f"Edit {no} is saved, but the message stays parked: {left.removesuffix('.')}.")
    else:
        messages.success(request, f"Edit {no} is saved. The message is queued.")


def _form(at: _Page, draft: EditForms, against: list[str] | None = None, *, changed: bool = False) -> HttpResponse:
    context = _context(at, "Edit") | {
        "draft": draft, "against": against or [], "opened": signing.dumps(_carried(at), salt=_OPENED),
        "changed": changed and _change_sentence(at),
    }  # fmt: skip
    return TemplateResponse(at.request, "reprocessing/admin/edit.html", context)


def _preview(at: _Page, to: Alteration, form: EditConfirmForm, refused: str = "") -> HttpResponse:
    own = unpack_attributes(bytes(at.current.attributes))
    written = _carried(at) | {
        "body": to.body.decode(errors=_AS_IT_IS),
        "attributes": pack_attributes(to.attributes).decode(),
    }
    context = _context(at, "Preview of the edit of") | {
        "changes": comparison.differences((bytes(at.current.body), own), (to.body, to.attributes)), "form": form,
        "written": signing.dumps(written, salt=_WRITTEN, compress=True),
        "refused": refused or (at.has_changed() and _change_sentence(at)), "size": to.size, "was": at.current.size,
        "notice": requested.notice(at.request, {at.letter.dlq_id: 1}), "request_button": requested.BUTTON,
        "order": edit.place_after_edit(at.current, to, place_letters.policy_of(at.letter.dlq)),
        "delivered_later": _delivered_later(at.letter),
    }  # fmt: skip
    return TemplateResponse(at.request, "reprocessing/admin/edit_preview.html", context)


def _delivered_later(letter: Letter) -> str:
    """Return a warning if later messages with the same ordering key are delivered already, else an empty text."""
    later = key_messages.delivered_later(letter)
    n, least = later.delivered, "At least " if later.is_cut else ""
    if not n:
        return ""
    messages_are = "later message of this key is" if n == 1 else "later messages of this key are"
    after = "it" if n == 1 else "them"
    return f"{least}{n:,} {messages_are} already delivered; the consumer gets this message after {after}."


def _context(at: _Page, action: str) -> dict[str, Any]:
    title = message_page.title_of(action, at.letter, at.request.user)
    return admin.site.each_context(at.request) | {"title": title, "original": at.letter}


def _change_sentence(at: _Page) -> str:
    return f"Nothing was done: {edit.describe_change(at.letter.pk, at.current)}. Open the message again to edit it."


def _carried(at: _Page) -> dict[str, Any]:
    return {
        "letter": at.letter.pk, "user": at.request.user.pk, "at": at.seen.finished_at.isoformat(),
        "revision": at.seen.revision,
    }  # fmt: skip


def _signed(request: HttpRequest, name: str, salt: str, letter: Letter) -> dict[str, Any] | None:
    """Return the content of a signed hidden field.

    None: the signature is invalid or over 12 hours old, or the field was made for another person or message.
    """
    try:
        found: dict[str, Any] = signing.loads(request.POST.get(name, ""), salt=salt, max_age=_VALID)
    except signing.BadSignature:
        return None
    return found if (found["letter"], found["user"]) == (letter.pk, request.user.pk) else None


def _seen(carried: Mapping[str, Any]) -> SeenLetter:
    return SeenLetter(datetime.fromisoformat(carried["at"]), carried["revision"])


def _may_replay(request: HttpRequest) -> bool:
    return request.user.has_perm("reprocessing.release_parkedletter")


def _refuse(request: HttpRequest, letter: Letter, why: str) -> HttpResponse:
    messages.error(request, why)
    return HttpResponseRedirect(reverse("admin:reprocessing_letter_change", args=[letter.pk]))
