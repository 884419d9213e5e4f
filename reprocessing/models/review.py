"""What a person did, and why: who, when, before and after, in the same transaction as the deed."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dead_letter_queue import DeadLetterQueue
from reprocessing.models.group import LetterGroup
from reprocessing.models.letter import DeadLetter
from reprocessing.models.operation import Operation
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
    RESTORED = "restored", "restored: back to the parking lot"
    EDITED = "edited", "edited"
    REVEALED = "revealed", "looked at its payload"
    EXPORTED = "exported", "exported"
    ASSIGNED = "assigned", "assigned"
    NOTED = "noted", "noted"


class Review(models.Model):
    """One act of one person on a letter, a group, a dlq, a run, a target or a rule; on none of them: on everything.

    It is written once (a trigger sees to it), and forgotten with what it is about. `operation`: what it was a part of.
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
        constraints = [
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="a_review_says_who_and_why"),
        ]
        indexes = [
            models.Index(F("letter"), F("at"), name="reviews_of_a_letter"),
            models.Index(F("group"), F("id"), condition=Q(group__isnull=False), name="reviews_of_a_group"),
            models.Index(F("operation"), F("id"), condition=Q(operation__isnull=False), name="reviews_of_an_operation"),
        ]

    def __str__(self) -> str:
        return f"{self.act} by {self.by}"


class Halt(models.Model):
    """A row that stops every send, fleet-wide; no row, no halt.

    The first is a person's stop. The second holds everything after a restore: `restored_to` is the time of the backup,
    and `after_restore release` alone lifts it.
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
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="a_halt_says_who_and_why"),
        ]
        default_permissions = ("view",)
        permissions = [("stop_sends", "Can stop all sends, and let them go on")]

    def __str__(self) -> str:
        return f"halted by {self.by}"
