"""Copies: the messages of captured letters in their DLQs, and whether these messages were deleted."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reprocessing.models.attempt import Attempt
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.letter import Letter


class DlqCopyState(models.TextChoices):
    """The state of a copy in its DLQ."""

    HELD = "held", "held: invisible in the DLQ until the message is finished"
    DELETE = "delete", "to be deleted"
    GONE = "gone", "deleted"


class DlqCopy(models.Model):
    """A copy of a letter: the captured message in its DLQ, or the letter's message that came back after an attempt.

    Attributes:
        attempt: the attempt after which the letter's message came back; null: the copy is the captured message.
        handle: receipt handle of the last receive.
        visible_until: when the copy becomes visible in the DLQ again.
        extended: whether the service has made the copy's visibility timeout longer since it received the copy.
        receives: how often this service received the copy from the DLQ.
    """

    pk = models.CompositePrimaryKey("dlq_id", "message_id")
    # The column has no index of its own. PostgreSQL would use that index in place of the primary key, and read all
    # copies of a DLQ to find one copy.
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="+", db_index=False)
    message_id = models.TextField()
    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="copies")
    attempt = models.ForeignKey(
        Attempt, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    state = models.TextField(choices=DlqCopyState.choices)
    handle = models.TextField()
    visible_until = models.DateTimeField()
    extended = models.BooleanField(db_default=False)
    receives = models.IntegerField(db_default=1)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_dlq_copy"
        verbose_name_plural = "copies in DLQs"
        constraints = [
            models.CheckConstraint(
                condition=Q(state=DlqCopyState.GONE, gone_at__isnull=False)
                | (~Q(state=DlqCopyState.GONE) & Q(gone_at=None)),
                name="gone_copy_has_time",
            )
        ]
        indexes = [
            models.Index(F("dlq"), condition=Q(state=DlqCopyState.DELETE), name="copies_to_delete"),
            models.Index(
                F("dlq"),
                F("visible_until"),
                condition=Q(state=DlqCopyState.HELD),
                include=["extended"],
                name="held_copies_by_visibility",
            ),
            models.Index(F("gone_at"), condition=Q(state=DlqCopyState.GONE), name="gone_copies_by_time"),
            models.Index(F("attempt"), condition=Q(attempt__isnull=False), name="copies_by_attempt"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} ({self.state})"
