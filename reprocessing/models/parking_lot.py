"""The parking lot: failure groups and bulk actions."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue


class GroupStatus(models.TextChoices):
    """What people make of a cause."""

    OPEN = "open", "open: nobody has seen to it"
    ACKNOWLEDGED = "acknowledged", "acknowledged: somebody sees to it"
    RESOLVED = "resolved", "resolved: it opens again when it recurs"
    IGNORED = "ignored", "ignored: also when it recurs"


class LetterGroup(models.Model):
    """One cause in one dlq. `fingerprint` is domain.fingerprint's digest, `cause` what it was read from, in its words.

    `title` tells it without a word of a payload. `first_at`, `last_at`: when the first and the last of its letters
    died. `replayed_at`: when letters of it were released last. `settled_at`: since when it has its status, `settled_by`
    whose word that is; a letter that was captured or parked later opens a resolved group again.
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
    """How far it is."""

    RUNNING = "running", "running"
    DONE = "done", "done"
    ABORTED = "aborted", "aborted: what was done stays done"


class Operation(models.Model):
    """One act of one person on every letter that a filter means.

    `token`: the page that asked for it; asked twice, it is done once. `filter` is a stored domain.sieve.Sieve, and
    means the letters up to the id `upto` alone, that were finished at `asked_at` or before: what arrives later is
    nobody's word. `asked_at` is when whoever asks looked at what it means. `arguments`: when, where to, to whom, as the
    act needs. `cursor`: the last letter that was looked at. `asked`: how many letters it meant when it began, `done`
    and `left_alone` how many of them were, and were not, touched; `refusals`: why, of the first of those, by letter id.
    `ended_by` and `why`: who aborted it.
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
