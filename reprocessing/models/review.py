"""What a person did, and why: who, when, before and after, in the same transaction as the deed."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dead_letter_queue import DeadLetterQueue
from reprocessing.models.letter import DeadLetter
from reprocessing.models.rule import Rule
from reprocessing.models.run import Run
from reprocessing.models.target import Target


class Act(models.TextChoices):
    """What was done."""

    RELEASED = "released", "released: back to its lane"
    DISCARDED = "discarded", "discarded: given up"
    STOPPED = "stopped", "stopped"
    RESUMED = "resumed", "resumed"
    ADDED = "added", "added"
    CHANGED = "changed", "changed"
    PLANNED = "planned", "planned"
    STARTED = "started", "started"
    PAUSED = "paused", "paused"
    ABORTED = "aborted", "aborted"
    RESET = "reset", "reset"


class Review(models.Model):
    """One act of one person on a letter, a dlq, a run, a target or a rule; on none of them: on everything."""

    act = models.TextField(choices=Act.choices)
    letter = models.ForeignKey(DeadLetter, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews")
    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.PROTECT, related_name="reviews")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.CASCADE, related_name="reviews")
    rule = models.ForeignKey(Rule, null=True, blank=True, on_delete=models.SET_NULL, related_name="reviews")
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_review"
        constraints = [
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="a_review_says_who_and_why"),
        ]
        indexes = [models.Index(F("letter"), F("at"), name="reviews_of_a_letter")]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}"


class Halt(models.Model):
    """The one row that stops every send, fleet-wide; no row, no halt."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.TextField()
    reason = models.TextField()

    class Meta:
        db_table = "redrive_halt"
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="there_is_one_halt"),
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="a_halt_says_who_and_why"),
        ]
        default_permissions = ("view",)
        permissions = [("stop_sends", "Can stop all sends, and let them go on")]

    def __str__(self) -> str:
        return f"halted by {self.by}"
