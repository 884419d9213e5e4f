"""What people made of a letter's bytes. Those it was captured with stay as they are, for ever."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reprocessing.models.letter import DeadLetter


class Revision(models.Model):
    """One edit of one letter; it never changes (a trigger sees to it).

    `body`, `attributes`: what is sent instead, attributes packed by domain.envelope. `body_hash`: that of this body,
    `former_hash` of the one before: copies of either may still come back. `idempotency_key`: the letter's since this
    edit, where that asked for another; null: it kept the one it had.
    """

    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    no = models.IntegerField()
    body = models.BinaryField()
    attributes = models.BinaryField()
    body_hash = models.BinaryField()
    former_hash = models.BinaryField()
    size = models.IntegerField()
    idempotency_key = models.TextField(null=True, blank=True)
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_revision"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="a_revision_number_is_never_reused"),
            models.CheckConstraint(condition=Q(no__gte=1), name="revisions_are_counted_from_one"),
            models.CheckConstraint(condition=~Q(by="") & ~Q(reason=""), name="a_revision_says_who_and_why"),
        ]
        indexes = [
            models.Index("body_hash", name="revisions_by_their_body"),
            models.Index("former_hash", name="revisions_by_what_was_before"),
        ]

    def __str__(self) -> str:
        return f"revision {self.no} of {self.letter_id}"
