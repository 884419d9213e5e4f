"""A replay operation with an id: what was selected, by whom, and how it went."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from reprocessing.models.dead_letter_queue import DeadLetterQueue


class RunKind(models.TextChoices):
    """Who feeds a run."""

    STANDING = "standing", "standing: beat feeds it whatever the dlq holds"
    DRAIN = "drain", "drain: a person selected its letters"


class RunState(models.TextChoices):
    """Where a run stands."""

    PLANNED = "planned", "planned"
    RUNNING = "running", "running"
    PAUSED = "paused", "paused: it goes on when somebody says so"
    ABORTED = "aborted", "aborted: what it left waits for another run"
    FINISHED = "finished", "finished"


class Run(models.Model):
    """One run. `selection` is what was asked for; the same id with another selection is refused.

    `selected`: how many letters a plan found, and `behind`: how many it had to leave, since earlier letters of their
    lanes are not part of it. `why`: who paused or aborted it, or that it stopped itself, and why. With `waves`, one
    letter goes first, then ten, then a hundred, then all.
    """

    name = models.SlugField(unique=True, max_length=100)
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="runs")
    kind = models.TextField(choices=RunKind.choices, default=RunKind.DRAIN)
    state = models.TextField(choices=RunState.choices, default=RunState.PLANNED)
    selection = models.JSONField(default=dict)
    asked_by = models.TextField(default="")
    reason = models.TextField(default="", blank=True)
    waves = models.BooleanField(db_default=False)
    selected = models.IntegerField(null=True, blank=True)
    behind = models.IntegerField(null=True, blank=True)
    stopped_by = models.TextField(db_default="", blank=True)
    why = models.TextField(db_default="", blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_run"
        default_permissions = ("view", "operate")
        constraints = [
            models.UniqueConstraint(
                fields=["dlq"], condition=Q(kind=RunKind.STANDING), name="a_dlq_has_one_standing_run"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[RunState.FINISHED, RunState.ABORTED]) | Q(kind=RunKind.DRAIN),
                name="a_standing_run_never_ends",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[RunState.PAUSED, RunState.ABORTED]) | (~Q(why="") & ~Q(stopped_by="")),
                name="a_run_that_stands_says_who_and_why",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_of_released(self) -> bool:
        """Whether it was begun for letters that people released: nobody selected them."""
        return "released" in self.selection
