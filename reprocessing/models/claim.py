"""The idempotency record: this key is being delivered, or has been delivered, to this target."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from reprocessing.models.letter import DeadLetter
from reprocessing.models.target import Target


class ClaimState(models.TextChoices):
    """What a key's claim says."""

    HELD = "held", "held: a letter under this key is under way"
    FREE = "free", "free: the letter under this key failed, another may try"
    DELIVERED = "delivered", "delivered: a letter under this key was delivered"
    DISCARDED = "discarded", "discarded: a person gave up the letter under this key"


class Claim(models.Model):
    """One key towards one target. A letter whose key is its message id has no row: it can have no twin."""

    pk = models.CompositePrimaryKey("target_id", "key_space", "key_hash")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+")
    key_space = models.TextField()
    key_hash = models.BinaryField()
    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="claims")
    state = models.TextField(choices=ClaimState.choices)
    body_hash = models.BinaryField()
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_claim"
        constraints = [
            models.CheckConstraint(
                condition=~Q(state=ClaimState.HELD) | Q(until__isnull=False), name="a_held_claim_says_until_when"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} by {self.letter_id}"
