"""JSON answers of the API about messages, their history and their bodies."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from reprocessing.api.site.fields import Answer
from reprocessing.api.site.paging import Next
from reprocessing.store.parking_lot.filtered_letters import ListedLetter


class MessageView(Answer):
    """A message, without its body."""

    redrive_id: UUID
    message_id: str = Field(description="the id that the message had in the DLQ")
    dlq: str
    state: str
    reason: str | None = Field(description="why the message is parked; null: it is not parked")
    key: str | None = Field(description="ordering key; null: none")
    failure_group: int | None = Field(description="id of the failure group; null: in no group")
    cause: str | None = Field(description="title of the failure group; null: in no group")
    sent_at: datetime = Field(description="when its producer sent it, before it failed")
    expires_at: datetime | None = Field(description="when SQS deletes the message from the DLQ; null: it is not there")
    finished_at: datetime | None = Field(
        description="when the message was parked or got a final state such as delivered; null: not yet"
    )
    attempts: int = Field(description="number of attempts, also those that other redrive tools made before the capture")
    assigned_to: str | None = Field(description="name of the user to whom the message is assigned; null: nobody")
    edited: bool

    @classmethod
    def of(cls, letter: ListedLetter) -> MessageView:
        """Return the JSON answer for a message of a list."""
        return cls(
            redrive_id=letter.public_id, message_id=letter.message_id, dlq=letter.dlq, state=letter.state,
            reason=letter.reason or None, key=letter.key, failure_group=letter.group_id, cause=letter.cause,
            sent_at=letter.first_sent_at, expires_at=letter.expires_at, finished_at=letter.finished_at,
            attempts=letter.attempts, assigned_to=letter.assigned_to or None, edited=letter.revision_id is not None,
        )  # fmt: skip


class MessagePage(Answer):
    """A page of messages, the newest first."""

    items: list[MessageView]
    next: Next
    total: int = Field(description="number of messages that match, counted up to 10,001")


class AttemptView(Answer):
    """An attempt: one counted try to deliver the message, and its number (`no`)."""

    no: int
    target: str = Field(description="ARN of the target")
    run: str | None
    opened_at: datetime = Field(description="when the attempt began")
    taken_at: datetime | None = Field(description="when the target accepted the message; null: it did not")
    closed_at: datetime | None = Field(description="when the outcome became known; null: not yet")
    returned_at: datetime | None = Field(description="when the message came back to the DLQ; null: it did not")
    outcome: str | None = Field(description="result of the attempt; null: not known yet")
    detail: str | None
    sent_message_id: str | None = Field(description="id that SQS gave to the sent message; null: none")


class DecisionView(Answer):
    """An entry of the audit log about the message: what was done (`act`), when, by whom and why."""

    at: datetime
    act: str
    by: str
    reason: str


class EditView(Answer):
    """An edit of the message: its number (`no`), when, by whom and why. `size`: bytes of the edited body."""

    no: int
    at: datetime
    by: str
    reason: str
    size: int


class DeliveryView(Answer):
    """Whether the message was delivered.

    `worked`: true or false; null: not known. `how`: by what this is known. `since`: since when. `sentence`: all of this
    for people.
    """

    how: str
    worked: bool | None
    since: datetime | None
    sentence: str


class MessageDetail(MessageView):
    """A message with its attempts, edits and audit log, the newest first, at most 200 of each; without its body."""

    detail: str | None
    sequence: str | None = Field(description="value that orders the messages of the key; null: none")
    idempotency_key: str | None
    run: str | None
    rule: str | None = Field(description="name of the rule that decided about the message; null: none")
    target: str | None = Field(description="ARN of the target")
    size: int
    delivery: DeliveryView
    history: list[AttemptView]
    edits: list[EditView]
    decisions: list[DecisionView]


class AttributeView(Answer):
    """A message attribute. A value that is not UTF-8 is encoded in base64."""

    name: str
    type: str
    value: str
    encoding: Literal["text", "base64"]


class BodyView(Answer):
    """The body of a message with its attributes. A body that is not UTF-8 is encoded in base64."""

    redrive_id: UUID
    edit: int = Field(description="number of the edit; 0: the captured body")
    encoding: Literal["text", "base64"]
    body: str
    attributes: list[AttributeView]
