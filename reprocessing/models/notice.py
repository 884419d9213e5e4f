"""What a dlq's SQS parking queue is still to be told: an outbox, written with the deed, sent after its commit."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.letter import DeadLetter


class News(models.TextChoices):
    """What happened to a letter of the parking lot."""

    PARKED = "parked", "parked: the copy goes into the parking queue"
    LEFT = "left", "released, discarded or come to another end: a mark follows its copy there"


class Notice(models.Model):
    """One message owed to a parking queue. A copy there cannot be taken back without receiving it, so it is marked."""

    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="notices")
    news = models.TextField(choices=News.choices)
    made_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_notice"
        indexes = [models.Index(F("id"), condition=Q(sent_at=None), name="notices_not_sent")]

    def __str__(self) -> str:
        return f"{self.news}: {self.letter_id}"
