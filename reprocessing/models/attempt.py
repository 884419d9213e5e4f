"""Attempts to deliver a letter, and claims on idempotency keys."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import F, Q

from reprocessing.domain.lifecycle import AttemptOutcome
from reprocessing.models.lane import Lane
from reprocessing.models.letter import DeadLetter
from reprocessing.models.run import Run, Wave
from reprocessing.models.safety import Breaker
from reprocessing.models.target import Target

#: Attempts that await their outcome: sent and open, or the letter's last one with a lost result.
OUTCOME_IS_OPEN: Final = Q(closed_at=None) & (Q(taken_at__isnull=False) | Q(deadline__isnull=False))

OUTCOMES = [(outcome.value, outcome.value) for outcome in AttemptOutcome]


class Attempt(models.Model):
    """One attempt to deliver a letter. A trigger guards it: each column is written once.

    `holds_lane` may become false, `ill` and `spared` may become true. `deadline`: until when the letter may come back.
    `taken_at`: when the target accepted the letter. `returned_at`: when it came back, also after `closed_at`.
    `breaker_epoch`: the breaker's epoch when the letter was sent. `ill`: counts as a failure for the breaker (true), as
    a success (false), or as neither (null). `wave`: set on a letter's first attempt in a run with waves. `spared`:
    failed because its target was down; does not count against the DLQ's `max_attempts`.
    """

    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="history", db_index=False)
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="attempts", db_index=False
    )
    no = models.IntegerField()
    epoch = models.IntegerField()
    fence = models.BigIntegerField()
    opened_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)
    sent_message_id = models.TextField(null=True, blank=True)
    outcome = models.TextField(choices=OUTCOMES, null=True, blank=True)
    detail = models.TextField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    returned_at = models.DateTimeField(null=True, blank=True)
    holds_lane = models.BooleanField()
    breaker = models.ForeignKey(
        Breaker, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    breaker_epoch = models.BigIntegerField(db_default=0)
    wave = models.ForeignKey(Wave, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    ill = models.BooleanField(null=True, blank=True)
    spared = models.BooleanField(db_default=False)

    class Meta:
        db_table = "redrive_attempt"
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="an_attempt_number_is_never_reused"),
            models.UniqueConstraint(fields=["lane"], condition=Q(holds_lane=True), name="one_attempt_holds_a_lane"),
            models.CheckConstraint(
                condition=Q(outcome=None, closed_at=None) | Q(outcome__isnull=False, closed_at__isnull=False),
                name="a_closed_attempt_has_an_outcome",
            ),
            models.CheckConstraint(
                condition=Q(holds_lane=False) | Q(closed_at=None), name="a_closed_attempt_holds_no_lane"
            ),
        ]
        indexes = [
            models.Index(
                F("sent_message_id"), condition=Q(sent_message_id__isnull=False), name="attempts_by_the_id_they_got"
            ),
            models.Index(F("target"), F("lane"), condition=Q(closed_at=None), name="attempts_still_open"),
            models.Index(F("run"), F("outcome"), name="attempts_of_a_run"),
            models.Index(F("breaker"), F("id"), name="attempts_in_sending_order"),
            models.Index(F("wave"), F("id"), condition=Q(wave__isnull=False), name="attempts_of_a_wave"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.no} of {self.letter_id}"


class ClaimState(models.TextChoices):
    """State of a claim."""

    HELD = "held", "held: a message with this key is being sent"
    FREE = "free", "free: the message failed, another may be sent"
    DELIVERED = "delivered", "delivered: a letter under this key was delivered"
    DISCARDED = "discarded", "discarded: a person discarded the message"


class Claim(models.Model):
    """The claim of a letter on its idempotency key at one target. Letters whose key is their message id have none."""

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
            )
        ]

    def __str__(self) -> str:
        return f"{self.state} by {self.letter_id}"
