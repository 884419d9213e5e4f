"""The audit log, stops of all sends, and edited versions of letters."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.letter import DeadLetter
from reprocessing.models.parking_lot import LetterGroup, Operation
from reprocessing.models.rule import Rule
from reprocessing.models.run import Run
from reprocessing.models.target import Target


class Act(models.TextChoices):
    """What was done."""

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


#: Who did it and why are not empty.
PERSON_AND_REASON = ~Q(by="") & ~Q(reason="")


class Review(models.Model):
    """One entry of the audit log, about a letter, group, DLQ, run, target or rule; without any: about the service.

    A trigger guards it: it is written once, and deleted with its subject. `operation`: the bulk action it was part of.
    """

    act = models.TextField(choices=Act.choices)
    letter = models.ForeignKey(DeadLetter, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews")
    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews")
    rule = models.ForeignKey(Rule, null=True, blank=True, on_delete=models.SET_NULL, related_name="reviews")
    group = models.ForeignKey(
        LetterGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    operation = models.ForeignKey(
        Operation, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_review"
        constraints = [models.CheckConstraint(condition=PERSON_AND_REASON, name="a_review_says_who_and_why")]
        indexes = [
            models.Index(F("letter"), F("at"), name="reviews_of_a_letter"),
            models.Index(F("group"), F("id"), condition=Q(group__isnull=False), name="reviews_of_a_group"),
            models.Index(F("operation"), F("id"), condition=Q(operation__isnull=False), name="reviews_of_an_operation"),
        ]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}"


class Halt(models.Model):
    """A row that stops all sends. Row 1: a person's stop. Row 2: the hold after a restore from a backup.

    `restored_to`: the time of the backup. Only `after_restore release` deletes row 2.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.TextField()
    reason = models.TextField()
    restored_to = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_halt"
        constraints = [
            models.CheckConstraint(
                condition=Q(id=1, restored_to=None) | Q(id=2, restored_to__isnull=False), name="there_is_one_halt"
            ),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="a_halt_says_who_and_why"),
        ]
        default_permissions = ("view",)
        permissions = [("stop_sends", "Can stop and resume all sends")]

    def __str__(self) -> str:
        return f"halted by {self.by}"


class Revision(models.Model):
    """One edit of one letter. A trigger guards it: it never changes.

    `body`, `attributes`: what is sent instead of the captured bytes (packed by domain.message.envelope). `former_hash`:
    hash of the body before the edit. `idempotency_key`: the new key; null: unchanged.
    """

    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    no = models.IntegerField()
    body = models.BinaryField()
    attributes = models.BinaryField()
    body_hash = models.BinaryField()
    former_hash = models.BinaryField()
    size = models.IntegerField()
    idempotency_key = models.TextField(null=True, blank=True)
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_revision"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="a_revision_number_is_never_reused"),
            models.CheckConstraint(condition=Q(no__gte=1), name="revisions_are_counted_from_one"),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="a_revision_says_who_and_why"),
        ]
        indexes = [
            models.Index("body_hash", name="revisions_by_their_body"),
            models.Index("former_hash", name="revisions_by_what_was_before"),
        ]

    def __str__(self) -> str:
        return f"revision {self.no} of {self.letter_id}"
