"""Requests for the approval of a second person, and the number of messages above which one is needed."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.approvals.deed import DeedKind
from reprocessing.models.dlq import DeadLetterQueue

#: The name of the only row of `ApprovalDefault`, and of the object in configuration files.
ALL_DLQS: Final = "all"


class ApprovalState(models.TextChoices):
    """State of a requested approval."""

    OPEN = "open", "open"
    APPROVED = "approved", "approved and done"
    DECLINED = "declined", "declined"
    EXPIRED = "expired", "expired: nothing was done"
    VOID = "void", "void: something changed, nothing was done"
    ALONE = "alone", "done without approval"


class Approval(models.Model):
    """A deed that waits for a second person, or waited for one. What is executed is exactly what is stored here.

    Attributes:
        deed, title, arguments, letters, body, attributes: the deed, see `domain.approvals.deed.Deed`.
        stamp: digest of the deed; `digest`: of the state of its messages, rules or settings when it was requested.
        dlq_ids: the DLQs that the deed is about; empty: it is about all DLQs.
        messages: how many messages the deed is about; null: any number.
        preview: what the approver sees, as pairs of label and text.
        by_key, decided_key: the names in a form that is equal for variants of a name.
        used_at: when the deed was executed: an approval is used once.
        outcome: what came of it, in words.
    """

    deed = models.TextField(choices=[(kind.value, kind.value) for kind in DeedKind])
    title = models.TextField()
    arguments = models.JSONField(default=dict)
    letters = ArrayField(models.BigIntegerField(), default=list, blank=True)
    body = models.BinaryField(null=True, blank=True)
    attributes = models.BinaryField(null=True, blank=True)
    stamp = models.BinaryField()
    digest = models.BinaryField()
    dlq_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    messages = models.IntegerField(null=True, blank=True)
    preview = models.JSONField(default=list)
    by = models.TextField()
    by_key = models.TextField()
    reason = models.TextField()
    asked_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    state = models.TextField(choices=ApprovalState.choices, db_default=ApprovalState.OPEN.value)
    decided_by = models.TextField(db_default="", blank=True)
    decided_key = models.TextField(db_default="", blank=True)
    decision_reason = models.TextField(db_default="", blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_approval"
        default_permissions = ("view",)
        permissions = [("act_alone", "Can act without the second person who is needed")]
        constraints = [
            models.CheckConstraint(condition=~Q(by_key="") & ~Q(reason=""), name="approval_has_person_and_reason"),
            models.CheckConstraint(
                condition=~Q(state__in=[ApprovalState.APPROVED, ApprovalState.DECLINED, ApprovalState.ALONE])
                | (~Q(decided_key="") & ~Q(decision_reason="")),
                name="approval_decision_has_person_and_reason",
            ),
            models.CheckConstraint(
                condition=~Q(state=ApprovalState.APPROVED) | ~Q(decided_key=F("by_key")),
                name="approver_is_not_the_requester",
            ),
            models.CheckConstraint(
                condition=Q(state=ApprovalState.OPEN, ended_at=None)
                | (~Q(state=ApprovalState.OPEN) & Q(ended_at__isnull=False)),
                name="only_ended_approval_has_end_time",
            ),
            models.CheckConstraint(
                condition=Q(state=ApprovalState.OPEN) | Q(body=None, attributes=None),
                name="only_open_approval_keeps_message",
            ),
            models.CheckConstraint(
                condition=Q(used_at=None) | Q(state__in=[ApprovalState.APPROVED, ApprovalState.ALONE]),
                name="only_approved_deed_is_done",
            ),
        ]
        indexes = [models.Index(F("expires_at"), condition=Q(state=ApprovalState.OPEN), name="open_approvals")]

    def __str__(self) -> str:
        return f"{self.pk}: {self.title}"


class ApprovalDefault(models.Model):
    """One row at most: above how many messages a second person is needed, for DLQs that do not set it themselves."""

    name = models.TextField(primary_key=True, default=ALL_DLQS)
    above = models.PositiveIntegerField()

    class Meta:
        db_table = "redrive_approval_default"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(name=ALL_DLQS), name="one_approval_default")]

    def __str__(self) -> str:
        return f"above {self.above}"


class UnapprovedDeed(models.Model):
    """How many messages of a DLQ with a limit one person handled alone. A day's sum must not exceed the limit."""

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, db_index=False)
    by_key = models.TextField()
    messages = models.IntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_unapproved_deed"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(messages__gte=1), name="unapproved_deed_has_messages")]
        indexes = [models.Index(F("dlq"), F("by_key"), F("at"), name="unapproved_deeds_by_person")]

    def __str__(self) -> str:
        return f"{self.messages} of {self.dlq_id}"
