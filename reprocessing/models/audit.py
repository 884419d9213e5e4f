"""The audit log, and the approvals by a second person that some actions of a person need."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.approvals.requested_action import ActionKind
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.letter import Letter
from reprocessing.models.parking_lot import BulkAction, FailureGroup
from reprocessing.models.rule import Rule
from reprocessing.models.run import Run
from reprocessing.models.safety import PERSON_AND_REASON
from reprocessing.models.target import Target


class AuditAct(models.TextChoices):
    """The kind of a person's action that an audit log entry records."""

    RELEASED = "released", "released"
    DISCARDED = "discarded", "discarded"
    STOPPED = "stopped", "stopped"
    RESUMED = "resumed", "resumed"
    ADDED = "added", "added"
    CHANGED = "changed", "changed"
    PLANNED = "planned", "planned"
    STARTED = "started", "started"
    PAUSED = "paused", "paused"
    ABORTED = "aborted", "aborted"
    RESET = "reset", "reset"
    RESTORED = "restored", "restored to the parking lot"
    EDITED = "edited", "edited"
    REVEALED = "revealed", "viewed the payload"
    EXPORTED = "exported", "exported"
    ASSIGNED = "assigned", "assigned"
    NOTED = "noted", "noted"
    UNLOCKED = "unlocked", "unlocked from the configuration file"
    REQUESTED = "requested", "requested an approval"
    APPROVED = "approved", "approved"
    DECLINED = "declined", "declined"
    EXPIRED = "expired", "approval expired"
    VOIDED = "voided", "approval became void"
    ACTED_ALONE = "acted_alone", "ACTED WITHOUT APPROVAL"
    ERASED = "erased", "erased"
    SHREDDED = "shredded", "shredded"
    ROTATED = "rotated", "rotated payload keys"


class AuditEntry(models.Model):
    """One entry of the audit log: what a person did, and why.

    An entry that names no DLQ, letter or other object is about the whole service. A database trigger forbids changes,
    except that a reference to a deleted DLQ, target or rule becomes null. `operation`: the bulk action that made the
    change; null: the change was not part of a bulk action.
    """

    act = models.TextField(choices=AuditAct.choices)
    # It needs no index of its own: `audit_entries_by_letter` begins with this column.
    letter = models.ForeignKey(
        Letter, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.SET_NULL, related_name="reviews")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.SET_NULL, related_name="reviews")
    rule = models.ForeignKey(Rule, null=True, blank=True, on_delete=models.SET_NULL, related_name="reviews")
    group = models.ForeignKey(
        FailureGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    operation = models.ForeignKey(
        BulkAction, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_audit_entry"
        constraints = [models.CheckConstraint(condition=PERSON_AND_REASON, name="audit_entry_has_person_and_reason")]
        indexes = [
            models.Index(F("letter"), F("at"), name="audit_entries_by_letter"),
            models.Index(F("group"), F("id"), condition=Q(group__isnull=False), name="audit_entries_by_group"),
            models.Index(
                F("operation"), F("id"), condition=Q(operation__isnull=False), name="audit_entries_by_bulk_action"
            ),
            models.Index(F("at"), F("id"), name="audit_entries_by_time"),
            models.Index(F("act"), F("id"), name="audit_entries_by_act"),
            models.Index(F("by"), F("id"), name="audit_entries_by_author"),
            # Most entries are about messages. These few are about settings, and forms show who changed a setting last.
            models.Index(F("id"), condition=Q(letter=None, run=None, group=None), name="audit_entries_about_settings"),
        ]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}"


#: The name of the only row of `ApprovalDefault`, and of its section in configuration files.
ALL_DLQS: Final = "all"


class ApprovalState(models.TextChoices):
    """The state of a requested approval."""

    OPEN = "open", "open"
    APPROVED = "approved", "approved and done"
    DECLINED = "declined", "declined"
    EXPIRED = "expired", "expired: nothing was done"
    VOID = "void", "void: something changed, nothing was done"
    ALONE = "alone", "done without approval"


class Approval(models.Model):
    """A request that a second person approve an action of a person. The action is stored and executed unchanged.

    Attributes:
        action, title, arguments, letters, body, attributes: see `domain.approvals.requested_action.RequestedAction`.
        stamp: digest of the action, equal for equal actions.
        digest: digest of the messages, rules or settings that the action is about, at the time of the request.
        dlq_ids: the DLQs that the action is about; empty: it is about all DLQs.
        messages: how many messages the action is about; null: any number.
        preview: what the approver sees, as pairs of label and text.
        by_key, decided_key: the names of requester and approver, in a form that ignores letter case and spaces.
        used_at: when the action was executed; null: not yet. An approval is used once.
        outcome: the result of the action, in words.
    """

    action = models.TextField(choices=[(kind.value, kind.value) for kind in ActionKind])
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
                name="only_approved_action_is_done",
            ),
        ]
        indexes = [models.Index(F("expires_at"), condition=Q(state=ApprovalState.OPEN), name="open_approvals")]

    def __str__(self) -> str:
        return f"{self.pk}: {self.title}"


class ApprovalDefault(models.Model):
    """The default approval limit: an action (of a person) about more than `above` messages needs a second person.

    It applies to DLQs whose `approval_above` is null. The table has at most one row; no row: there is no default limit.
    """

    name = models.TextField(primary_key=True, default=ALL_DLQS)
    above = models.PositiveIntegerField()

    class Meta:
        db_table = "redrive_approval_default"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(name=ALL_DLQS), name="one_approval_default")]

    def __str__(self) -> str:
        return f"above {self.above}"


class UnapprovedAction(models.Model):
    """How many messages of a DLQ (`messages`) a person changed by one action without approval.

    In 24 hours, one person may change no more messages of a DLQ without approval than the DLQ's approval limit.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, db_index=False)
    by_key = models.TextField()
    messages = models.IntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_unapproved_action"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(messages__gte=1), name="unapproved_action_has_messages")]
        indexes = [models.Index(F("dlq"), F("by_key"), F("at"), name="unapproved_actions_by_person")]

    def __str__(self) -> str:
        return f"{self.messages} of {self.dlq_id}"
