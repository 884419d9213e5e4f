"""Failure groups (letters that failed for the same reason), bulk actions, values for searches, and saved filters."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from reprocessing.domain.search.search_fields import VALUE_LENGTH
from reprocessing.models.dlq import DeadLetterQueue


class FailureGroupStatus(models.TextChoices):
    """The status of a failure group, which a person sets."""

    OPEN = "open", "open"
    ACKNOWLEDGED = "acknowledged", "acknowledged: somebody works on it"
    RESOLVED = "resolved", "resolved: reopens when it recurs"
    IGNORED = "ignored", "ignored: stays ignored when it recurs"


class FailureGroup(models.Model):
    """A failure group: the letters of one DLQ that failed for the same reason.

    A resolved group is opened again when a letter of the group is captured or parked after `settled_at`. A group that
    is merged into another group keeps its row, and its letters still refer to this row, so that people can split the
    groups again.

    Attributes:
        fingerprint: digest of `cause` (domain.parking_lot.failure_fingerprint).
        title: the reason in words, without text of payloads other than a message's type.
        name: the title that a person gave; empty: `title` is shown.
        keys: the top-level keys that the JSON bodies of the group have, if letters were grouped by them, because the
            failure reason and the message type are not known; else empty. New groups with similar keys are merged.
        merged_into: the group into which this group was merged, at `merged_at`; null: not merged. That group is itself
            not merged.
        created_at: when the service found the first letter. `assigned_to`: name of the user who works on the group.
        first_at, last_at: when the oldest and the newest message of the group were sent.
        released_at: when a letter of the group was last released.
        settled_at, status_by: when the status was set, and by whom.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="groups", db_index=False)
    fingerprint = models.BinaryField()
    cause = models.TextField()
    title = models.TextField()
    name = models.TextField(db_default="", blank=True)
    keys = ArrayField(models.TextField(), db_default=[], blank=True)
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="members", db_index=False
    )
    merged_at = models.DateTimeField(null=True, blank=True)
    status = models.TextField(choices=FailureGroupStatus.choices, db_default=FailureGroupStatus.OPEN.value)
    note = models.TextField(db_default="", blank=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    status_by = models.TextField(db_default="", blank=True)
    assigned_to = models.TextField(db_default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_failure_group"
        default_permissions = ("view", "change")
        verbose_name = "group"
        constraints = [
            models.UniqueConstraint(fields=["dlq", "fingerprint"], name="one_group_per_fingerprint_and_dlq"),
            models.CheckConstraint(
                condition=Q(status=FailureGroupStatus.OPEN) | (Q(settled_at__isnull=False) & ~Q(status_by="")),
                name="group_status_has_time_and_person",
            ),
            models.CheckConstraint(condition=Q(first_at__lte=F("last_at")), name="group_first_not_after_last"),
            models.CheckConstraint(
                condition=Q(merged_into=None) | ~Q(merged_into=F("id")), name="group_is_not_merged_into_itself"
            ),
        ]
        indexes = [
            models.Index(F("last_at").desc(), F("id").desc(), name="groups_by_last_letter"),
            models.Index(F("merged_into"), condition=Q(merged_into__isnull=False), name="groups_by_merged_into"),
            models.Index(F("dlq"), F("last_at").desc(), condition=~Q(keys=[]), name="groups_with_shape"),
        ]

    def __str__(self) -> str:
        return self.name or self.title

    @property
    def shown(self) -> FailureGroup:
        """Return the group that people see: the group into which this group was merged, else this group itself."""
        return self.merged_into or self


class GroupHour(models.Model):
    """How many letters of a failure group were first sent in the hour that began at `hour`, for the group's chart."""

    group_id = models.BigIntegerField()
    hour = models.DateTimeField()
    n = models.BigIntegerField()

    class Meta:
        db_table = "redrive_group_hour"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["group_id", "hour"], name="one_count_per_group_and_hour")]
        indexes = [models.Index(F("hour"), name="group_hours_by_hour")]

    def __str__(self) -> str:
        return f"{self.n} in group {self.group_id}"


class BulkActionKind(models.TextChoices):
    """What a bulk action does to each letter."""

    RELEASE = "release", "release"
    DISCARD = "discard", "discard"
    RESTORE = "restore", "restore to the parking lot"
    ASSIGN = "assign", "assign"
    NOTE = "note", "note"
    EDIT = "edit", "edit"


class BulkActionState(models.TextChoices):
    """The state of a bulk action."""

    RUNNING = "running", "running"
    DONE = "done", "done"
    ABORTED = "aborted", "aborted: messages that were changed stay changed"


class BulkAction(models.Model):
    """One action of one person on every letter that a filter matches.

    A letter is not changed if it finished, was parked or joined the filter's failure group after `asked_at`, or if its
    id is above `max_letter_id`.

    Attributes:
        token: id of the page on which the action was confirmed, so that confirming twice starts only one action.
        asked_at: when the person saw the letters. `started_at`: when the person confirmed the action.
        cursor: id of the last letter that was processed.
        asked: how many letters the filter matched at the start.
        done: how many letters were changed.
        letters_skipped: how many letters were not changed.
        refusals: for the first skipped letters, the reason by letter id.
        aborted_by, why: who aborted the action, and why.
    """

    token = models.UUIDField(unique=True, default=uuid.uuid4)
    act = models.TextField(choices=BulkActionKind.choices)
    filter = models.JSONField()
    arguments = models.JSONField(default=dict)
    by = models.TextField()
    reason = models.TextField()
    state = models.TextField(choices=BulkActionState.choices, db_default=BulkActionState.RUNNING.value)
    asked_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(db_default=Now())
    max_letter_id = models.BigIntegerField()
    cursor = models.BigIntegerField(db_default=0)
    asked = models.IntegerField()
    done = models.IntegerField(db_default=0)
    letters_skipped = models.IntegerField(db_default=0)
    refusals = models.JSONField(default=dict)
    leased_until = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    aborted_by = models.TextField(db_default="", blank=True)
    why = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_bulk_action"
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="bulk_action_has_person_and_reason"),
            models.CheckConstraint(
                condition=Q(state=BulkActionState.RUNNING, finished_at=None)
                | (~Q(state=BulkActionState.RUNNING) & Q(finished_at__isnull=False)),
                name="only_ended_bulk_action_has_end_time",
            ),
            models.CheckConstraint(
                condition=~Q(state=BulkActionState.ABORTED) | (~Q(aborted_by="") & ~Q(why="")),
                name="aborted_bulk_action_has_person_and_reason",
            ),
        ]
        indexes = [models.Index(F("id"), condition=Q(state=BulkActionState.RUNNING), name="running_bulk_actions")]

    def __str__(self) -> str:
        return f"{self.get_act_display()} by {self.by}"


class SearchEntry(models.Model):
    """A value of a search field of a letter. A trigger deletes the row when the letter's payload is deleted.

    The columns have no foreign key constraints, because the statements that write rows read the letter and its DLQ.

    Attributes:
        value: the value, at most 200 characters; of an encrypted DLQ, a keyed hash that begins with U+001A.
        masked: whether the DLQ's mask rules hide the value. Only people who may reveal it can then search for it.
    """

    pk = models.CompositePrimaryKey("letter_id", "name", "value")
    letter = models.ForeignKey(
        "Letter", on_delete=models.CASCADE, related_name="search_entries", db_index=False, db_constraint=False
    )
    dlq_id = models.BigIntegerField()
    name = models.TextField(db_collation="C")
    value = models.TextField(db_collation="C")
    masked = models.BooleanField()

    class Meta:
        db_table = "redrive_search_entry"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=~Q(value="") & Q(LessThanOrEqual(Length("value"), VALUE_LENGTH)),
                name="search_entry_has_1_to_200_characters",
            ),
        ]
        # With the included columns, PostgreSQL need not read the table to find letters that a person may find.
        indexes = [
            models.Index(
                fields=["name", "value", "letter"], include=["dlq_id", "masked"], name="search_entries_by_value"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.letter_id}"


class SavedFilter(models.Model):
    """A filter of the parking lot that a person saved, for themselves or for one of their teams.

    Attributes:
        filter: the conditions of the filter, in the same form as `BulkAction.filter`.
        owner: the person who saved the filter. `team`: the team whose members see it; null: only the owner sees it.
    """

    name = models.TextField()
    filter = models.JSONField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_saved_filter"
        default_permissions = ("delete",)
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="saved_filter_has_name"),
            models.UniqueConstraint(
                fields=["owner", "name"], condition=Q(team=None), name="one_saved_filter_per_owner_and_name"
            ),
            models.UniqueConstraint(
                fields=["team", "name"], condition=Q(team__isnull=False), name="one_saved_filter_per_team_and_name"
            ),
        ]

    def __str__(self) -> str:
        return self.name
