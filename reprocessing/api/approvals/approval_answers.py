"""JSON answers of the API about requests for approval by a second person."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from reprocessing.api.site.fields import Answer, ChangeAnswer
from reprocessing.api.site.paging import Next
from reprocessing.models import Approval


class PreviewView(Answer):
    """One line that describes the requested change: a label and a text."""

    label: str
    text: str


class ApprovalView(Answer):
    """A request for a change that needs the approval of a second person."""

    id: int
    title: str
    action: str = Field(description="kind of the change, such as release or start_run")
    state: str = Field(description="open, approved, declined, expired, void (something changed), alone (not approved)")
    messages: int | None = Field(description="number of messages that the change is about; null: any number")
    preview: list[PreviewView] = Field(description="what the change does, as stored with the request")
    by: str = Field(description="who requested the change")
    reason: str
    asked_at: datetime
    expires_at: datetime
    decided_by: str | None = Field(description="who approved or declined the request; null: nobody yet")
    decision_reason: str | None
    outcome: str | None = Field(description="result of the change, or why it was not made; null: not decided")

    @classmethod
    def of(cls, row: Approval) -> ApprovalView:
        """Return the JSON answer for this request."""
        return cls(
            id=row.pk, title=row.title, action=row.action, state=row.state, messages=row.messages,
            preview=[PreviewView(label=str(label), text=str(text)) for label, text in row.preview], by=row.by,
            reason=row.reason, asked_at=row.asked_at, expires_at=row.expires_at, decided_by=row.decided_by or None,
            decision_reason=row.decision_reason or None, outcome=row.outcome or None,
        )  # fmt: skip


class ApprovalDetail(ApprovalView):
    """A request for approval. `void_because` says whether something changed since, so that it cannot be approved."""

    void_because: str | None = Field(
        description="what changed since the request, so that its approval would do nothing; null: nothing changed"
    )


class ApprovalPage(Answer):
    """A page of requests for approval, the newest first."""

    items: list[ApprovalView]
    next: Next


class ApprovalNeededAnswer(ChangeAnswer):
    """The answer to a change that needs a second person: nothing was done, and an approval was requested."""

    needs_approval: Literal[True]
    approval: ApprovalView
    approval_url: str = Field(description="path of the stored request in this API")


class DecisionAboutApproval(ChangeAnswer):
    """The result of approving or declining a request. `approval`: the request after that."""

    approval: ApprovalView
