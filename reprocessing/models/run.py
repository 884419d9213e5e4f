"""Runs (redrive operations) and their waves."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.target import MAX_RATE, MIN_RATE


class RunKind(models.TextChoices):
    """Which letters a run takes: all of a DLQ in mode automatic, or a selection."""

    AUTOMATIC = "automatic", "automatic: redrives whatever the DLQ holds"
    DRAIN = "drain", "drain: redrives a selection"


class RunState(models.TextChoices):
    """The state of a run."""

    PLANNED = "planned", "planned"
    RUNNING = "running", "running"
    PAUSED = "paused", "paused"
    ABORTED = "aborted", "aborted: queued messages are left to another run"
    FINISHED = "finished", "finished"


class Run(models.Model):
    """One redrive operation on letters of a DLQ.

    Attributes:
        name: the run's id for people. A request with the same id and another selection is refused.
        selection: which letters were requested, as `domain.runs.selection` writes it.
        selected: how many letters the run's plan selected; null: the letters are not selected yet.
        behind: how many requested letters were left out, because earlier letters of their lanes are not in the run.
        stopped_by, why: who paused or aborted the run, and why.
        waves: whether the run sends waves of 1, 10 and 100 letters before all others.
        rate: most letters a second that the run sends to each target; null: only the target's rate limits the run.
        waits_for_outcomes: whether a target's setting `advance` applies. If not, a lane's next letter is sent as soon
            as the target accepted the letter before.
        figures: counts of the plan's letters, made when they were selected; null for small plans
            (store.runs.plan_figures).
    """

    name = models.SlugField(unique=True, max_length=100)
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="runs", db_index=False)
    kind = models.TextField(choices=RunKind.choices, default=RunKind.DRAIN)
    state = models.TextField(choices=RunState.choices, default=RunState.PLANNED)
    selection = models.JSONField(default=dict)
    asked_by = models.TextField(default="")
    reason = models.TextField(default="", blank=True)
    waves = models.BooleanField(db_default=False)
    rate = models.FloatField(null=True, blank=True)
    waits_for_outcomes = models.BooleanField(db_default=True)
    figures = models.JSONField(null=True, blank=True)
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
                fields=["dlq"], condition=Q(kind=RunKind.AUTOMATIC), name="one_automatic_run_per_dlq"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[RunState.FINISHED, RunState.ABORTED]) | Q(kind=RunKind.DRAIN),
                name="automatic_run_never_ends",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[RunState.PAUSED, RunState.ABORTED]) | (~Q(why="") & ~Q(stopped_by="")),
                name="stopped_run_has_person_and_reason",
            ),
            models.CheckConstraint(
                condition=Q(rate=None) | Q(rate__gte=MIN_RATE, rate__lte=MAX_RATE),
                name="run_rate_between_0_001_and_1000000",
            ),
        ]
        # These indexes are for the filters of the admin's list of runs, which shows the newest runs first.
        indexes = [
            models.Index(F("state"), F("id"), name="runs_by_state"),
            models.Index(F("asked_by"), F("id"), name="runs_by_person"),
            models.Index(F("dlq"), F("id"), name="runs_by_dlq"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_for_released_letters(self) -> bool:
        """Return whether the run was started only to send letters that people released from the parking lot."""
        return "released" in self.selection


class Wave(models.Model):
    """One wave of a run; only the newest wave is open. `size` null: all remaining letters.

    `sent`: how many letters were first sent in this wave; `failed`: how many of these letters failed. Both are set
    when the wave ends.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="wave_history", db_index=False)
    no = models.IntegerField()
    size = models.IntegerField(null=True, blank=True)
    opened_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True, blank=True)
    sent = models.IntegerField(null=True, blank=True)
    failed = models.IntegerField(null=True, blank=True)

    class Meta:
        db_table = "redrive_wave"
        constraints = [
            models.UniqueConstraint(fields=["run", "no"], name="unique_wave_number_per_run"),
            models.UniqueConstraint(fields=["run"], condition=Q(settled_at=None), name="one_open_wave_per_run"),
            models.CheckConstraint(condition=Q(size=None) | Q(size__gte=1), name="wave_size_at_least_1"),
            models.CheckConstraint(
                condition=Q(settled_at=None, sent=None, failed=None)
                | Q(
                    settled_at__isnull=False, sent__isnull=False, failed__isnull=False, sent__gte=F("failed"),
                    failed__gte=0,
                ),
                name="only_settled_wave_has_result",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"wave {self.no} of {self.run_id}"


class RunMinute(models.Model):
    """How many attempts of a run were opened in the minute that began at `minute`, for the chart of its rate."""

    run_id = models.BigIntegerField()
    minute = models.DateTimeField()
    sent = models.BigIntegerField()

    class Meta:
        db_table = "redrive_run_minute"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["run_id", "minute"], name="one_count_per_run_and_minute")]
        indexes = [models.Index(F("minute"), name="run_minutes_by_minute")]

    def __str__(self) -> str:
        return f"{self.sent} of run {self.run_id}"
