"""Read a payload that a page shows, and record the view in the audit log.

Values of masked fields are masked, unless the person may reveal them and gives a reason.
"""

from __future__ import annotations

from typing import Final

from django import forms
from django.http import HttpRequest

from reprocessing.models import Letter
from reprocessing.store.payloads import viewed_content
from reprocessing.store.payloads.viewed_content import CAPTURED, TO_SEND, ViewedContent

LOOKED: Final = "Showed the payload."
FETCHED: Final = "Downloaded the body."
OPENED: Final = "Opened the message for editing."
FROM_S3: Final = "Showed the body in S3."
COMPARED: Final = "Compared an edit with the captured message."
COMPARED_TWO: Final = "Compared the message with another message."


class RevealForm(forms.Form):
    """The form that asks for the reason of revealing masked values."""

    reveal_reason = forms.CharField(
        max_length=2_000, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Recorded with your name in the audit log.",
    )  # fmt: skip


def may_reveal(request: HttpRequest) -> bool:
    """Return whether this person has the permissions to see payloads and to reveal masked values."""
    return request.user.has_perms(("reprocessing.view_payload", "reprocessing.reveal_payload"))


def reveal_reason(request: HttpRequest) -> str:
    """Return the reason for revealing masked values, which the person entered; empty: the values stay masked."""
    form = RevealForm(request.POST) if "reveal_reason" in request.POST and may_reveal(request) else None
    return str(form.cleaned_data["reveal_reason"]) if form is not None and form.is_valid() else ""


def payload_to_send(letter: Letter, request: HttpRequest, why: str) -> ViewedContent | None:
    """Return the payload that would be sent: the last edit or, without edits, the captured payload.

    None: the payload was deleted. `why`: the reason in the audit log, if the person did not enter one.
    """
    return _view(letter, TO_SEND, request, why)


def captured_payload(letter: Letter, request: HttpRequest, why: str) -> ViewedContent | None:
    """Return the payload as captured, without edits; None: it was deleted. `why`: as for `payload_to_send`."""
    return _view(letter, CAPTURED, request, why)


def captured_and_edited(letter: Letter, no: int, request: HttpRequest) -> tuple[ViewedContent, ViewedContent] | None:
    """Return the captured payload and the payload of edit number `no`; None: one of the two does not exist."""
    reason = reveal_reason(request)
    by = request.user.get_username()
    return viewed_content.view_edit(letter, no, by=by, why=reason or COMPARED, revealed=bool(reason))


def _view(letter: Letter, revision: int, request: HttpRequest, why: str) -> ViewedContent | None:
    reason = reveal_reason(request)
    by = request.user.get_username()
    return viewed_content.view_content(letter, revision, by=by, why=reason or why, revealed=bool(reason))
