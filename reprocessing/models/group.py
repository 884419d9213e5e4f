"""Letters that died of one cause, as far as they say: what people look at instead of ten thousand letters."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reprocessing.models.dead_letter_queue import DeadLetterQueue


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
