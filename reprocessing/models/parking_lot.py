"""Failure groups and bulk actions."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue


class GroupStatus(models.TextChoices):
    """Status of a failure group."""

    OPEN = "open", "open"
    ACKNOWLEDGED = "acknowledged", "acknowledged: somebody works on it"
    RESOLVED = "resolved", "resolved: reopens when it recurs"
    IGNORED = "ignored", "ignored: also when it recurs"


class LetterGroup(models.Model):
    """A failure group: the letters of a DLQ that failed for one reason.

    `fingerprint`: digest of domain.parking_lot.failure_fingerprint. `cause`: what it was computed from. `title` quotes
    no payload. `first_at`, `last_at`: when its oldest and newest message were sent. `replayed_at`: last release of one
    of its letters. `settled_at`, `settled_by`: since when it has its status, and who set it. A letter that is captured
    or parked later opens a resolved group again.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="groups", db_index=False)
    fingerprint = models.BinaryField()
    cause = models.TextField()
    title = models.TextField()
    status = models.TextField(choices=GroupStatus.choices, db_default=GroupStatus.OPEN.value)
    note = models.TextField(db_default="", blank=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    replayed_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_group"
        default_permissions = ("view", "change")
        verbose_name = "group"
        constraints = [
            models.UniqueConstraint(fields=["dlq", "fingerprint"], name="a_cause_has_one_group_a_dlq"),
            models.CheckConstraint(
                condition=Q(status=GroupStatus.OPEN) | (Q(settled_at__isnull=False) & ~Q(settled_by="")),
                name="a_settled_group_says_since_when_and_by_whom",
            ),
            models.CheckConstraint(condition=Q(first_at__lte=F("last_at")), name="a_group_begins_before_it_ends"),
        ]
        indexes = [models.Index(F("last_at").desc(), F("id").desc(), name="groups_by_their_last_death")]

    def __str__(self) -> str:
        return self.title


class OperationAct(models.TextChoices):
    """What is done to each letter."""

    RELEASE = "release", "replay"
    DISCARD = "discard", "discard"
    RESTORE = "restore", "restore to the parking lot"
    ASSIGN = "assign", "assign"
    NOTE = "note", "note"


class OperationState(models.TextChoices):
    """State of a bulk action."""

    RUNNING = "running", "running"
    DONE = "done", "done"
    ABORTED = "aborted", "aborted: what was done stays done"


class Operation(models.Model):
    """One action by one person on every letter that a filter matches.

    `token`: of the page that asked; one token starts one action. `filter`: a stored message filter; it means letters
    up to id `upto` that were finished at `asked_at` or before. `cursor`: id of the last letter that was processed.
    `asked`: letters matched at the start, `done` changed, `left_alone` skipped; `refusals`: reasons of the first
    skipped ones, by letter id. `ended_by`, `why`: who aborted it.
    """

    token = models.UUIDField(unique=True, default=uuid.uuid4)
    act = models.TextField(choices=OperationAct.choices)
    filter = models.JSONField()
    arguments = models.JSONField(default=dict)
    by = models.TextField()
    reason = models.TextField()
    state = models.TextField(choices=OperationState.choices, db_default=OperationState.RUNNING.value)
    asked_at = models.DateTimeField(db_default=Now())
    upto = models.BigIntegerField()
    cursor = models.BigIntegerField(db_default=0)
    asked = models.IntegerField()
    done = models.IntegerField(db_default=0)
    left_alone = models.IntegerField(db_default=0)
    refusals = models.JSONField(default=dict)
    leased_until = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.TextField(db_default="", blank=True)
    why = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_operation"
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="an_operation_says_who_and_why"),
            models.CheckConstraint(
                condition=Q(state=OperationState.RUNNING, finished_at=None)
                | (~Q(state=OperationState.RUNNING) & Q(finished_at__isnull=False)),
                name="an_operation_ends_once",
            ),
            models.CheckConstraint(
                condition=~Q(state=OperationState.ABORTED) | (~Q(ended_by="") & ~Q(why="")),
                name="an_aborted_operation_says_by_whom_and_why",
            ),
        ]
        indexes = [
            models.Index(F("id"), condition=Q(state=OperationState.RUNNING), name="operations_that_are_not_done")
        ]

    def __str__(self) -> str:
        return f"{self.get_act_display()} by {self.by}"
