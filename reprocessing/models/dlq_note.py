"""What a DLQ held at one moment, noted every few minutes, to see whether it grows."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dead_letter_queue import DeadLetterQueue


class DlqNote(models.Model):
    """One note; see `domain.notifications.dlq_growth.DlqNote`. Old ones are deleted when new ones are taken."""

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, db_index=False)
    taken_at = models.DateTimeField(db_default=Now())
    uncaptured = models.BigIntegerField()
    captured = models.BigIntegerField()
    unfinished = models.BigIntegerField()

    class Meta:
        db_table = "redrive_dlq_note"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(uncaptured__gte=0), name="a_note_of_a_dlq_counts_upwards"),
        ]
        indexes = [models.Index(F("dlq"), F("taken_at"), name="notes_of_a_dlq")]

    def __str__(self) -> str:
        return f"{self.dlq_id} at {self.taken_at}"
