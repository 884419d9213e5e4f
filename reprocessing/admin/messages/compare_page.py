"""The page that compares a message with one of its edits, or with another message. The audit log records the view."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.db.models.options import Options
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import partition

from reprocessing.admin.messages import comparison, listed_messages, show_payload
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.messages.show_payload import RevealForm
from reprocessing.admin.site import visible_rows
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store.ordering import key_messages
from reprocessing.store.payloads import message_types
from reprocessing.store.payloads.viewed_content import ViewedContent

_NUMBER: Final = re.compile("[0-9]{1,9}")
_LONGEST: Final = 200  # max characters of an entered id
_NO_MESSAGE: Final = 'There is no message with the id "{}". Enter a message id or a redrive id.'
_NO_DEFAULT: Final = (
    "No delivered message of the same type or ordering key was found among the newest of this DLQ. Enter the id of a "
    "message."
)
_NO_BODY: Final = "One of the two payloads was deleted."


class NothingToCompare(Exception):
    """There is no other version or message to compare with. The error's text is shown to the person."""


class NoSuchMessage(NothingToCompare):
    """The person sees no message with the id that they entered."""


def page(request: HttpRequest, letter: Letter, opts: Options[Any], reveal: RevealForm | None) -> HttpResponse:
    """Show the lines in which a message differs from one of its edits, or from another message.

    The form has the number of an edit in the field `no`, or the id of the other message in the field `with`. If `with`
    is empty, a similar message that was delivered is chosen.

    Raises:
        NothingToCompare: there is no such edit or message, or its payload was deleted.
        PayloadUnreadable: a payload is encrypted, and its key is missing or was destroyed.
    """
    context = _with_message(request, letter) if "with" in request.POST else _with_edit(request, letter)
    before, after = context.pop("pair")
    context |= {
        "original": letter, "opts": opts, "reveal": reveal, "back": listed_messages.suffix(request),
        "changes": comparison.differences(*((held.body, held.attributes) for held in (before, after))),
        "is_masked": before.is_masked or after.is_masked,
    }  # fmt: skip
    return TemplateResponse(
        request, "reprocessing/admin/comparison.html", admin.site.each_context(request) | context
    )  # fmt: skip


def _with_edit(request: HttpRequest, letter: Letter) -> dict[str, Any]:
    text = request.POST.get("no", "")
    no = int(text) if _NUMBER.fullmatch(text) else 0
    pair = show_payload.captured_and_edited(letter, no, request)
    if pair is None:
        raise NothingToCompare("There is no such edit.")
    return {
        "pair": pair, "title": f"Edit {no} compared with the captured message", "name": "no", "value": no,
        "removed": "the captured message", "added": f"edit {no}",
    }  # fmt: skip


def _with_message(request: HttpRequest, letter: Letter) -> dict[str, Any]:
    other, why = _other(request, letter)
    pair = _both(request, other, letter)
    name = "last delivered" if why else "the other message"
    return {
        "pair": pair, "title": "Two messages compared", "name": "with", "value": other.public_id, "other": other,
        "why": why, "removed": f"{name} ({visible(other.message_id)})", "added": "this message",
    }  # fmt: skip


def _other(request: HttpRequest, letter: Letter) -> tuple[Letter, str]:
    """Return the message to compare with, and in words why it was chosen; empty: the person entered its id."""
    text = request.POST["with"].strip().replace("\0", "")
    letters = visible_rows.rows(request, Letter.objects.select_related("dlq", "revision"))
    if text:
        return _named(request, letter, text[:_LONGEST]), ""
    kind = message_types.type_of(letter, opens=True)
    found = message_types.last_delivered_of_type(letter, kind) if kind else None
    why = f"the last delivered message of type {visible(kind)} from {letter.dlq.name}"
    if found is None:
        found, why = key_messages.last_delivered(letter), "the last delivered message of the same ordering key"
    other = letters.filter(pk=found).first() if found else None
    if other is None:
        raise NothingToCompare(_NO_DEFAULT)
    return other, why


def _named(request: HttpRequest, letter: Letter, text: str) -> Letter:
    """Return the message with this message id or redrive id. If several have the id, prefer one of the same DLQ.

    Messages that this person may not see are not found.
    """
    dlqs = list(visible_rows.rows(request, DeadLetterQueue.objects).values_list("pk", flat=True))
    letters = visible_rows.rows(request, Letter.objects.select_related("dlq", "revision"))
    found = letters.filter(Q(dlq__in=dlqs, message_id=text) | _redrive_id(text)).exclude(pk=letter.pk)[:100]
    others, same = partition(lambda other: other.dlq_id == letter.dlq_id, found)
    if not (same or others):
        raise NoSuchMessage(_NO_MESSAGE.format(visible(text)))
    chosen: Letter = (same or others)[0]
    return chosen


def _both(request: HttpRequest, other: Letter, letter: Letter) -> tuple[ViewedContent, ViewedContent]:
    pair = [show_payload.payload_to_send(message, request, show_payload.COMPARED_TWO) for message in (other, letter)]
    if pair[0] is None or pair[1] is None:
        raise NothingToCompare(_NO_BODY)
    return pair[0], pair[1]


def _redrive_id(text: str) -> Q:
    try:
        return Q(public_id=UUID(text))
    except ValueError:
        return Q(pk__in=[])
