"""Data keys, which seal payloads, and erasures, which delete everything about a value (docs/adr/0044, 0045)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reprocessing.models.dlq import DeadLetterQueue


class PayloadKey(models.Model):
    """A data key, wrapped: one for each DLQ and day.

    The key without DLQ and day is the installation's key: it seals consumer reports and filters, and computes digests.

    Attributes:
        wrapped: the key, wrapped by the key `wrapped_by` of REDRIVE_PAYLOAD_KEYS; null: a person destroyed it.
    """

    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    day = models.DateField(null=True, blank=True)
    wrapped = models.BinaryField(null=True, blank=True)
    wrapped_by = models.TextField()
    made_at = models.DateTimeField(db_default=Now())
    destroyed_at = models.DateTimeField(null=True, blank=True)
    destroyed_by = models.TextField(default="", blank=True)
    destroy_reason = models.TextField(default="", blank=True)

    class Meta:
        db_table = "redrive_payload_key"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["dlq", "day"], condition=Q(destroyed_at=None), nulls_distinct=False,
                name="one_payload_key_per_dlq_and_day",
            ),
            models.CheckConstraint(
                condition=Q(dlq__isnull=False, day__isnull=False) | Q(dlq=None, day=None, destroyed_at=None),
                name="only_installation_key_has_no_dlq",
            ),
            models.CheckConstraint(
                condition=Q(wrapped__isnull=False, destroyed_at=None, destroyed_by="", destroy_reason="")
                | (Q(wrapped=None, destroyed_at__isnull=False) & ~Q(destroyed_by="") & ~Q(destroy_reason="")),
                name="destroyed_payload_key_has_person_and_reason",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"payload key {self.pk}"


class Erasure(models.Model):
    """One erasure of everything about a value. The value is not stored.

    `digest`: keyed hash of the DLQs and the value, by which a repeated command continues an interrupted erasure.
    `counts`: how many rows were changed, by kind.
    """

    digest = models.BinaryField()
    by = models.TextField()
    reason = models.TextField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_erasure"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["digest"], condition=Q(finished_at=None), name="one_open_erasure_per_value"
            ),
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="erasure_has_person_and_reason"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"erasure {self.pk}"
