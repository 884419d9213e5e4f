"""List messages, show the history of a message, and show its body."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from reprocessing.api.messages.message_answers import (
    AttemptView,
    AttributeView,
    BodyView,
    DecisionView,
    DeliveryView,
    EditView,
    MessageDetail,
    MessagePage,
    MessageView,
)
from reprocessing.api.messages.message_query import MessageQuery, read_filter
from reprocessing.api.messages.read_body import read_body
from reprocessing.api.site import paging
from reprocessing.api.site.caller import caller_of
from reprocessing.api.site.document import reads
from reprocessing.api.site.paging import After, Limit
from reprocessing.api.site.problems import not_found
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FINISHED_STATES
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.ordering.placement import read_sort_key
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.replay.attempt_detail import without_quotes
from reprocessing.models import Letter
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.search import open_messages

router: Final = Router()
_TAG: Final = "Messages"
#: The history of a message has at most this many attempts, this many edits and this many audit entries.
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class _Readable:
    text: str
    encoding: Literal["text", "base64"]


class PagedMessages(MessageQuery):
    """Query parameters of a list of messages: the filter, and the page."""

    limit: Limit = paging.DEFAULT
    after: After = ""


@reads(router, "/messages", Scope.MESSAGES_READ, MessagePage, tag=_TAG)
def list_messages(request: HttpRequest, query: Query[PagedMessages]) -> MessagePage:
    """List messages.

    Lists parked messages if `state` is not given. The newest come first: finished and parked messages by the time when
    they were finished or parked, other messages by the time when they were first sent. One request cannot list finished
    or parked messages together with other messages.
    """
    asked = MessageQuery(**query.model_dump(exclude={"limit", "after"}))
    criteria, below = read_filter(asked, caller_of(request)), paging.read_cursor(query.after)
    finished = _is_finished(criteria)
    read_page = filtered_letters.letter_page if finished else open_messages.open_page
    found = read_page(criteria, below=below, limit=query.limit + 1)
    following = None
    if len(found.letters) > query.limit:
        last = found.letters[query.limit - 1]
        at = last.finished_at if finished else last.first_sent_at
        following = paging.write_cursor(at or last.first_sent_at, last.id)
    return MessagePage(
        items=[MessageView.of(letter) for letter in found.letters[: query.limit]], next=following, total=found.n
    )


@reads(router, "/messages/{uuid:redrive_id}", Scope.MESSAGES_READ, MessageDetail, tag=_TAG)
def get_message(request: HttpRequest, redrive_id: UUID) -> MessageDetail:
    """Show a message and its history, without its body."""
    letter = _letter(request, redrive_id)
    known = delivery_status.status_of(letter)
    return MessageDetail(
        **_view(letter).model_dump(),
        detail=without_quotes(letter.detail) or letter.blocked_reason or None,
        sequence=read_sort_key(letter.sequence) if letter.sequence else None, idempotency_key=letter.idempotency_key,
        run=letter.run.name if letter.run else None, rule=letter.rule.name if letter.rule else None,
        target=letter.target.arn if letter.target else None, size=letter.size,
        delivery=DeliveryView(how=known.how.value, worked=known.worked, since=known.since, sentence=known.sentence),
        history=[
            AttemptView(
                no=attempt.no, target=attempt.target.arn, run=attempt.run.name if attempt.run else None,
                opened_at=attempt.opened_at, taken_at=attempt.taken_at, closed_at=attempt.closed_at,
                returned_at=attempt.returned_at, outcome=attempt.outcome,
                detail=attempt.detail and without_quotes(attempt.detail),
                sent_message_id=attempt.sent_message_id,
            )
            for attempt in letter.history.select_related("target", "run").order_by("-no")[:_MOST]
        ],
        edits=[
            EditView(no=edit.no, at=edit.at, by=edit.by, reason=edit.reason, size=edit.size)
            for edit in letter.revisions.defer("body", "attributes").order_by("-no")[:_MOST]
        ],
        decisions=[
            DecisionView(at=entry.at, act=entry.act, by=entry.by, reason=entry.reason)
            for entry in letter.reviews.order_by("-at", "-pk")[:_MOST]
        ],
    )  # fmt: skip


@reads(router, "/messages/{uuid:redrive_id}/body", Scope.MESSAGES_BODIES, BodyView, tag=_TAG)
def get_message_body(request: HttpRequest, redrive_id: UUID, *, captured: bool = False) -> BodyView:
    """Show the body of a message.

    Returns the body that would be sent. With captured=true, returns the captured body, also if the message was edited.
    Each request is recorded in the audit log.
    """
    letter = _letter(request, redrive_id)
    found = read_body(letter, captured=captured, by=caller_of(request).by)
    if found is None:
        raise not_found("body")
    body = _readable(found.body)
    return BodyView(
        redrive_id=redrive_id, edit=found.revision, encoding=body.encoding, body=body.text,
        attributes=[_attribute(name, attribute) for name, attribute in sorted(found.attributes.items())],
    )  # fmt: skip


def _is_finished(criteria: MessageFilter) -> bool:
    finished = {state in FINISHED_STATES for state in criteria.states}
    if len(finished) > 1:
        raise InvalidFilter("A list has finished or unfinished messages, not both. Send two requests.")
    return finished == {True}


def _letter(request: HttpRequest, redrive_id: UUID) -> Letter:
    every = Letter.objects.select_related("dlq", "run", "rule", "target", "group__merged_into", "revision")
    return caller_of(request).row(every, "message", public_id=redrive_id)


def _view(letter: Letter) -> MessageView:
    held = letter.copies.exclude(state__in=("delete", "gone")).exists()
    group = letter.group.shown if letter.group else None
    return MessageView(
        redrive_id=letter.public_id, message_id=letter.message_id, dlq=letter.dlq.name, state=letter.state,
        reason=letter.reason or None, key=letter.ordering_key, failure_group=group.pk if group else None,
        cause=str(group) if group else None, sent_at=letter.first_sent_at,
        expires_at=letter.expires_at if held else None, finished_at=letter.finished_at, attempts=letter.attempts,
        assigned_to=letter.assigned_to or None, edited=letter.revision_id is not None,
    )  # fmt: skip


def _attribute(name: str, attribute: Attribute) -> AttributeView:
    value = attribute.value
    found = _readable(value) if isinstance(value, bytes) else _readable(value.encode(errors="surrogatepass"))
    return AttributeView(name=name, type=attribute.type, value=found.text, encoding=found.encoding)


def _readable(held: bytes) -> _Readable:
    try:
        return _Readable(held.decode(), "text")
    except UnicodeDecodeError:
        return _Readable(base64.b64encode(held).decode(), "base64")
