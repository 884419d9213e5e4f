"""Indexed values of search fields (`SearchEntry`), and filters of messages that people saved (`SavedFilter`)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from reprocessing.domain.search.search_fields import VALUE_LENGTH
from reprocessing.models.letter import Letter


class SearchEntry(models.Model):
    """A value of a search field of a letter. A trigger deletes it when the letter's payload is deleted.

    The statements that write it also read the letter and its DLQ, so PostgreSQL does not check these references.

    Attributes:
        value: the value, at most 200 characters; of an encrypted DLQ, a keyed hash that begins with U+001A.
        masked: the DLQ's mask rules hide the value, so that only people who may reveal it find the letter by it.
    """

    pk = models.CompositePrimaryKey("letter_id", "name", "value")
    letter = models.ForeignKey(
        Letter, on_delete=models.CASCADE, related_name="search_entries", db_index=False, db_constraint=False
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
        indexes = [models.Index(F("name"), F("value"), F("letter"), name="search_entries_by_value")]

    def __str__(self) -> str:
        return f"{self.name} of {self.letter_id}"


class SavedFilter(models.Model):
    """A filter of the parking lot that a person saved, for themselves or for one of their teams.

    Attributes:
        filter: the filter, as a bulk action stores it.
        owner: the person who saved it. `team`: the team whose members see it; null: only the owner does.
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
