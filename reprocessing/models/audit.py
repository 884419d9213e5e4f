"""The audit log, the stop of all sends, and edited versions of letters."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.letter import Letter
from reprocessing.models.parking_lot import BulkAction, FailureGroup
from reprocessing.models.rule import Rule
from reprocessing.models.run import Run
from reprocessing.models.target import Target


class AuditAct(models.TextChoices):
    """The kind of change that an audit log entry records."""

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
    ERASED = "erased", "erased"
    SHREDDED = "shredded", "shredded"
    ROTATED = "rotated", "rotated payload keys"


#: The person and the reason are not empty.
PERSON_AND_REASON = ~Q(by="") & ~Q(reason="")


class AuditEntry(models.Model):
    """One entry of the audit log: what a person did, and why. If all references are null, it is about the service.

    A trigger forbids changes, except that references to a deleted DLQ, target or rule become null. `operation`: the
    bulk action that made the change, if any.
    """

    act = models.TextField(choices=AuditAct.choices)
    letter = models.ForeignKey(Letter, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews")
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
        ]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}"


class GlobalStop(models.Model):
    """A row that stops all sends. Row 1: a person's stop. Row 2: the hold after a restore from a backup.

    `restored_to`: the time of the backup. Only `manage.py after_restore release` deletes row 2.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.TextField()
    reason = models.TextField()
    restored_to = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_global_stop"
        constraints = [
            models.CheckConstraint(
                condition=Q(id=1, restored_to=None) | Q(id=2, restored_to__isnull=False),
                name="one_stop_by_hand_one_by_restore",
            ),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="global_stop_has_person_and_reason"),
        ]
        default_permissions = ("view",)
        permissions = [("stop_sends", "Can stop and resume all sends")]

    def __str__(self) -> str:
        return f"halted by {self.by}"


class Revision(models.Model):
    """One edit of one letter. A trigger forbids changes, except that the bytes are sealed with another key.

    `body`, `attributes`: sent instead of the captured bytes; domain.message.envelope packs the attributes.
    `previous_body_hash`: hash of the body before the edit. `idempotency_key`: the new key; null: unchanged.
    """

    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    no = models.IntegerField()
    body = models.BinaryField()
    attributes = models.BinaryField()
    body_hash = models.BinaryField()
    previous_body_hash = models.BinaryField()
    size = models.IntegerField()
    idempotency_key = models.TextField(null=True, blank=True)
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_revision"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="unique_revision_number_per_letter"),
            models.CheckConstraint(condition=Q(no__gte=1), name="revision_number_at_least_1"),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="revision_has_person_and_reason"),
        ]
        indexes = [
            models.Index("body_hash", name="revisions_by_body_hash"),
            models.Index("previous_body_hash", name="revisions_by_previous_hash"),
        ]

    def __str__(self) -> str:
        return f"revision {self.no} of {self.letter_id}"
