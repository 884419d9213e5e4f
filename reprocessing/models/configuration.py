"""Policies, which are named sets of DLQ settings, and the objects that a configuration file manages (docs/adr/0039)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reprocessing.domain.configuration.keys import Kind


class Policy(models.Model):
    """A named set of DLQ settings. A DLQ has the values of its policy, except for its own settings.

    `settings`: values by the DLQ's field names. `interval` is in seconds, `crontab` is a text of five fields.
    """

    name = models.SlugField(unique=True, max_length=100)
    settings = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_policy"
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class ManagedObject(models.Model):
    """An object that a configuration file manages. The admin does not change the object while it is locked.

    Attributes:
        name: the object's name; of a target, its ARN or URL.
        written: the object's settings after the last apply. Any difference from them is drift.
        applied_from: where the file came from, such as a commit (apply_config --source).
        unlocked_at: since when people may change the object in the admin; null: it is locked.
    """

    kind = models.TextField(choices=[(kind.value, kind.singular) for kind in Kind])
    name = models.TextField()
    written = models.JSONField()
    applied_from = models.TextField(blank=True)
    applied_by = models.TextField()
    applied_at = models.DateTimeField(db_default=Now())
    unlocked_at = models.DateTimeField(null=True, blank=True)
    unlocked_by = models.TextField(default="", blank=True)
    unlock_reason = models.TextField(default="", blank=True)

    class Meta:
        db_table = "redrive_managed_object"
        default_permissions = ("view",)
        permissions = [("unlock_managedobject", "Can unlock objects that a configuration file manages")]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="one_mark_per_managed_object"),
            models.CheckConstraint(
                condition=Q(unlocked_at=None, unlocked_by="", unlock_reason="")
                | (Q(unlocked_at__isnull=False) & ~Q(unlocked_by="") & ~Q(unlock_reason="")),
                name="unlock_has_person_and_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{Kind(self.kind).singular} {self.name}"
