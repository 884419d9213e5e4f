"""Request bodies and JSON answers of the API for decisions about messages, and for bulk actions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from reprocessing.api.messages.message_query import MessageQuery
from reprocessing.api.site.fields import Answer, Change, ChangeAnswer, Moment, Text, Yes, without_zero
from reprocessing.api.site.paging import Next
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.json_patch import LONGEST_PATCH
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import assignment

#: Max messages of one decision; more messages need a bulk action.
MOST: Final = 500
_A_YEAR: Final = timedelta(days=366)

_WHOM: Final = "name of a user of the admin; empty: nobody"

Assignee = Annotated[str, Field(max_length=150, description=_WHOM), AfterValidator(without_zero)]
Ids = Annotated[list[UUID], Field(min_length=1, max_length=MOST, description="redrive ids; see GET /messages")]


class Decision(Change):
    """The request to discard, restore or annotate the messages with these redrive ids."""

    redrive_ids: Ids
    selection: str | None = Field(
        None, max_length=40,
        description="`selection` of the dry run's answer: nothing is done if a message changed since the dry run",
    )  # fmt: skip


class Release(Decision):
    """The request to release the messages with these redrive ids."""

    at: Moment | None = Field(
        None, description="do not send before this time; later messages of the same ordering keys also wait"
    )
    target: Text | None = Field(
        None, description="send the messages to this target, regardless of rules: name, ARN or URL"
    )


class Assignment(Decision):
    """The request to assign the messages with these redrive ids to a person, or to nobody."""

    to: Assignee


class RefusedMessage(Answer):
    """A message that was not changed (in a dry run: would not be changed), and why."""

    redrive_id: UUID
    why: str


class DecisionAnswer(ChangeAnswer):
    """The result of a decision about messages, or of its dry run."""

    selection: str = Field(description="a digest of the messages that can be changed, in their present state")
    messages: int = Field(description="number of changed messages; in a dry run, of messages that would change")
    done: list[UUID] = Field(description="redrive ids of the messages that were changed")
    refused: list[RefusedMessage]


class BulkRequest(Change):
    """The request to release, discard, restore, assign, annotate or edit all messages that a filter matches."""

    action: Literal["release", "discard", "restore", "assign", "note", "edit"]
    filter: MessageQuery
    at: Moment | None = Field(None, description="of a release: do not send before this time")
    target: Text | None = Field(None, description="of a release: send to this target, regardless of rules")
    to: Assignee | None = Field(None, description=f"of an assignment: {_WHOM}")
    patch: str | None = Field(
        None, min_length=1, max_length=LONGEST_PATCH,
        description="of an edit: a JSON Patch (RFC 6902) as a text, so that numbers keep all digits",
    )  # fmt: skip
    release: Yes = Field(default=False, description="of an edit: release each edited message")
    changes_keys: Yes = Field(
        default=False, description="of an edit: also change values from which the service reads keys"
    )
    seen_at: Moment | None = Field(
        None, description="`seen_at` of the dry run's answer: messages that first matched later are not changed"
    )


class AbortRequest(Change):
    """The request to abort a bulk action."""


class CountView(Answer):
    """How many of the matching messages belong to one DLQ, are in one state and have one parking reason.

    `reason` is null if the messages are not parked.
    """

    dlq: str
    state: str
    reason: str | None
    messages: int


class SkippedView(Answer):
    """A reason why messages were skipped, and their number. Only the first 20 skipped messages are counted here."""

    why: str
    messages: int


class BulkActionView(Answer):
    """A bulk action: one action on all messages that a filter matches, and its progress."""

    id: int
    action: str
    state: str = Field(description="running, done or aborted")
    filter: dict[str, Any] = Field(description="the filter, with ids instead of names; a searched text is not shown")
    by: str
    reason: str
    asked_at: datetime
    finished_at: datetime | None
    messages: int = Field(description="number of messages that matched at the start")
    done: int
    skipped: int
    skipped_because: list[SkippedView]
    aborted_by: str | None
    why_aborted: str | None


class BulkActionPage(Answer):
    """A page of bulk actions, the newest first."""

    items: list[BulkActionView]
    next: Next


class BulkAnswer(ChangeAnswer):
    """The result of the request to start a bulk action, or of its dry run."""

    seen_at: datetime = Field(description="when messages were counted; send it to change no messages that match later")
    counts: list[CountView] = Field(description="number of messages that match, counted up to 10,001")
    bulk_action: BulkActionView | None


class AbortAnswer(ChangeAnswer):
    """The result of the request to abort a bulk action, or of its dry run."""

    bulk_action: BulkActionView


def require_assignee(name: str) -> None:
    """Check that messages can be assigned to the user with this name.

    Raises:
        InvalidFilter: nobody who can use the admin has this name.
    """
    if name and not assignment.assignable_people().filter(username=name).exists():
        raise InvalidFilter(
            f'No user of the admin is named "{name}". Send the name of one, or an empty text for nobody.'
        )


def require_future(at: datetime | None) -> None:
    """Check that this time, before which a message is not sent, is in the future. None (no such time) is accepted.

    Raises:
        InvalidFilter: the time is past, or more than 366 days ahead.
    """
    now = lanes.database_now()
    if at is not None and not now < at <= now + _A_YEAR:
        raise InvalidFilter(f"`at` is not a future time within a year; it is {now:%Y-%m-%d %H:%M} UTC.")
