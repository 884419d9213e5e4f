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
    FINISHED = "finished", "finished"


class Run(models.Model):
    """One run. `selection` is what was asked for; the same id with another selection is refused."""

    name = models.SlugField(unique=True, max_length=100)
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="runs")
    kind = models.TextField(choices=RunKind.choices, default=RunKind.DRAIN)
    state = models.TextField(choices=RunState.choices, default=RunState.PLANNED)
    selection = models.JSONField(default=dict)
    asked_by = models.TextField(default="")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_run"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq"], condition=Q(kind=RunKind.STANDING), name="a_dlq_has_one_standing_run"
            ),
            models.CheckConstraint(
                condition=~Q(state=RunState.FINISHED) | Q(kind=RunKind.DRAIN), name="a_standing_run_never_finishes"
            ),
        ]

    def __str__(self) -> str:
        return self.name
