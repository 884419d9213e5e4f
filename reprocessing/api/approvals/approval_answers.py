"""Approvals, as the API answers them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from reprocessing.api.site.fields import Answer, ChangeAnswer
from reprocessing.models import Approval


class PreviewView(Answer):
    """A part of what is done: a label and a text."""

    label: str
    text: str


class ApprovalView(Answer):
    """A change that waits for a second person, or waited for one."""

    id: int
    title: str
    deed: str
    state: str = Field(description="open, approved, declined, expired, void (something changed) or alone")
    messages: int | None = Field(description="number of messages; null: any number")
    preview: list[PreviewView] = Field(description="what is done, frozen with the request")
    by: str
    reason: str
    asked_at: datetime
    expires_at: datetime
    decided_by: str | None
    decision_reason: str | None
    outcome: str | None = Field(description="what came of it")

    @classmethod
    def of(cls, row: Approval) -> ApprovalView:
        """Return an approval."""
        return cls(
            id=row.pk, title=row.title, deed=row.deed, state=row.state, messages=row.messages,
            preview=[PreviewView(label=str(label), text=str(text)) for label, text in row.preview], by=row.by,
            reason=row.reason, asked_at=row.asked_at, expires_at=row.expires_at, decided_by=row.decided_by or None,
            decision_reason=row.decision_reason or None, outcome=row.outcome or None,
        )  # fmt: skip


class ApprovalDetail(ApprovalView):
    """An approval, and whether it could still be given."""

    void_because: str | None = Field(description="what changed since an open request: it would be void; null: nothing")


class ApprovalPage(Answer):
    """A page of approvals, the newest first."""

    items: list[ApprovalView]
    next: str | None


class ApprovalNeededAnswer(ChangeAnswer):
    """Nothing was done: a second person is needed, and an approval was requested."""

    needs_approval: Literal[True]
    approval: ApprovalView
    approval_url: str = Field(description="path of the request")


class DecisionAboutApproval(ChangeAnswer):
    """What became of the decision about a request."""

    approval: ApprovalView
