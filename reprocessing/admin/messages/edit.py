"""Edit a parked letter: its form, then what would change, then the deed. What was seen and written travels signed.

Nothing of it is kept in a session. Whoever opens the form sees the payload, which is recorded; without that there is
no difference to look at.
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
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from reprocessing import conf
from reprocessing.admin.messages import comparison, show_payload
from reprocessing.admin.messages.edit_forms import Confirmation, Draft
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import pack, unpack
from reprocessing.domain.parking_lot.edit_policy import Keys
from reprocessing.models import DeadLetter
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, Overtaken, Seen, Unsendable
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.parking_lot import editing
from reprocessing.store.parking_lot.editing import Stand

_OPENED: Final = "reprocessing.edit.opened"
_WRITTEN: Final = "reprocessing.edit.written"
#: Seconds for which a page can be sent back: a shift.
_VALID: Final = 12 * 3_600
_AS_IT_IS: Final = "surrogateescape"  # bytes that are no text, in a page that carries text
_ANEW: Final = "Nothing was done: this page is too old, or somebody else's. Open the letter again."


@dataclass(frozen=True, slots=True)
class _Page:
    """One request: who edits which letter, as it stands now and as it was opened."""

    request: HttpRequest
    letter: DeadLetter
    stand: Stand = field(repr=False)
    seen: Seen

    @property
    def goes_by(self) -> Keys:
        """What the dlq goes by."""
        return edit.keys(self.letter.dlq)

    def overtaken(self) -> bool:
        """Whether it is not any more what was opened."""
        now = (self.stand.state, self.stand.finished_at, self.stand.revision)
        return now != (LetterState.PARKED, self.seen.finished_at, self.seen.revision)


def page(request: HttpRequest, letter: int) -> HttpResponse:
    """Whatever step a page of ours asks for: open, look, back, do."""
    return require_POST(_page)(request, letter)


def _page(request: HttpRequest, letter: int) -> HttpResponse:
    may = ("reprocessing.view_parkedletter", "reprocessing.edit_parkedletter", "reprocessing.view_payload")
    if not request.user.has_perms(may):
        raise PermissionDenied
    found, stand = DeadLetter.objects.select_related("dlq").filter(pk=letter).first(), editing.stands(letter)
    if found is None:
        raise Http404
    if stand is None:
        return _elsewhere(request, found, "Its bytes are no longer kept: there is nothing to edit.")
    if "do" in request.POST or "back" in request.POST:
        return _written(request, found, stand)
    return _look(request, found, stand) if "look" in request.POST else _open(request, found, stand)


def _open(request: HttpRequest, letter: DeadLetter, stand: Stand) -> HttpResponse:
    if stand.state != LetterState.PARKED or stand.finished_at is None:
        return _elsewhere(
            request, letter, f"This letter is not parked: it is {stand.state}. Only parked ones are edited."
        )
    show_payload.sent(letter, by=request.user.get_username(), why=show_payload.OPENED)
    at = _Page(request, letter, stand, Seen(stand.finished_at, stand.revision))
    return _form(at, Draft(stand, conf.current().marks, at.goes_by))


def _look(request: HttpRequest, letter: DeadLetter, stand: Stand) -> HttpResponse:
    """The form was sent: what would change, or what speaks against it."""
    opened = _signed(request, "opened", _OPENED, letter)
    if opened is None:
        return _elsewhere(request, letter, _ANEW)
    at = _Page(request, letter, stand, _seen(opened))
    draft = Draft(stand, conf.current().marks, at.goes_by, request.POST)
    if at.overtaken():
        return _form(at, draft, overtaken=True)
    to = draft.alteration()
    against = edit.problems(stand, to, conf.current().marks) if to else []
    if to is None or against:
        return _form(at, draft, against)
    return _preview(at, to, Confirmation(may_replay=_may_replay(request), touched=edit.touched(stand, to, at.goes_by)))


def _written(request: HttpRequest, letter: DeadLetter, stand: Stand) -> HttpResponse:
    """What was looked at was confirmed, or is to be written on."""
    said = _signed(request, "written", _WRITTEN, letter)
    if said is None:
        return _elsewhere(request, letter, _ANEW)
    at = _Page(request, letter, stand, _seen(said))
    to = Alteration(said["body"].encode(errors=_AS_IT_IS), unpack(said["attributes"].encode()))
    if "back" in request.POST:
        return _form(at, Draft(stand, conf.current().marks, at.goes_by, written=to), overtaken=at.overtaken())
    form = Confirmation(request.POST, may_replay=_may_replay(request), touched=edit.touched(stand, to, at.goes_by))
    return _do(at, to, form) if form.is_valid() else _preview(at, to, form)


def _do(at: _Page, to: Alteration, form: Confirmation) -> HttpResponse:
    given = form.cleaned_data
    key = str(uuid.uuid4()) if given["new_key"] else None
    done = edit.letter(
        at.letter.pk, at.seen, Alteration(to.body, to.attributes, key), names=conf.current().marks,
        by=at.request.user.get_username(), reason=given["reason"], replay=given["then"] == "replay",
    )  # fmt: skip
    match done:
        case Edited(no, left):
            _tell(at.request, no, left, replay=given["then"] == "replay")
            stays = given["then"] != "replay" and at.request.user.has_perm("reprocessing.view_parkedletter")
            page = "parkedletter" if stays else "deadletter"  # where it can be decided about
            return HttpResponseRedirect(reverse(f"admin:reprocessing_{page}_change", args=[at.letter.pk]))
        case Overtaken(why):
            return _preview(at, to, form, f"Nothing was done: {why}.")
        case Unsendable(problems):
            return _preview(at, to, form, f"Nothing was done. {' '.join(problems)}")
        case _ as never:
            assert_never(never)


def _tell(request: HttpRequest, no: int, left: str, *, replay: bool) -> None:
    if not replay:
        messages.success(request, f"Edit {no} is kept; the letter stays parked until somebody replays it.")
    elif left:
        messages.warning(request, f"Edit {no} is kept, and the letter stays parked: {left.removesuffix('.')}.")
    else:
        messages.success(request, f"Edit {no} is kept, and goes as soon as it is the letter's turn.")


def _form(at: _Page, draft: Draft, against: list[str] | None = None, *, overtaken: bool = False) -> HttpResponse:
    context = _context(at, f"Edit {at.letter.message_id}") | {
        "draft": draft, "against": against or [], "opened": signing.dumps(_carried(at), salt=_OPENED),
        "overtaken": overtaken and _said(at),
    }  # fmt: skip
    return TemplateResponse(at.request, "reprocessing/admin/edit.html", context)


def _preview(at: _Page, to: Alteration, form: Confirmation, refused: str = "") -> HttpResponse:
    own = unpack(bytes(at.stand.attributes))
    written = _carried(at) | {"body": to.body.decode(errors=_AS_IT_IS), "attributes": pack(to.attributes).decode()}
    context = _context(at, f"What the edit of {at.letter.message_id} changes") | {
        "changes": comparison.of((bytes(at.stand.body), own), (to.body, to.attributes)), "form": form,
        "written": signing.dumps(written, salt=_WRITTEN, compress=True),
        "refused": refused or (at.overtaken() and _said(at)), "size": to.size, "was": at.stand.size,
        "order": edit.order(at.stand, to, place_letters.policy_of(at.letter.dlq)),
    }  # fmt: skip
    return TemplateResponse(at.request, "reprocessing/admin/edit_preview.html", context)


def _context(at: _Page, title: str) -> dict[str, Any]:
    return admin.site.each_context(at.request) | {"title": title, "original": at.letter}


def _said(at: _Page) -> str:
    return f"Nothing was done: {edit.overtaken(at.letter.pk, at.stand)}. Open the letter again to edit it as it is now."


def _carried(at: _Page) -> dict[str, Any]:
    return {
        "letter": at.letter.pk, "user": at.request.user.pk, "at": at.seen.finished_at.isoformat(),
        "revision": at.seen.revision,
    }  # fmt: skip


def _signed(request: HttpRequest, name: str, salt: str, letter: DeadLetter) -> dict[str, Any] | None:
    """What a page of ours carried for this person and this letter; None: it is none of these."""
    try:
        found: dict[str, Any] = signing.loads(request.POST.get(name, ""), salt=salt, max_age=_VALID)
    except signing.BadSignature:
        return None
    return found if (found["letter"], found["user"]) == (letter.pk, request.user.pk) else None


def _seen(carried: Mapping[str, Any]) -> Seen:
    return Seen(datetime.fromisoformat(carried["at"]), carried["revision"])


def _may_replay(request: HttpRequest) -> bool:
    return request.user.has_perm("reprocessing.release_parkedletter")


def _elsewhere(request: HttpRequest, letter: DeadLetter, why: str) -> HttpResponse:
    messages.error(request, why)
    return HttpResponseRedirect(reverse("admin:reprocessing_deadletter_change", args=[letter.pk]))
