"""Attempts to deliver letters, and claims. A claim is an idempotency key that a letter has reserved at a target."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import F, Q

from reprocessing.domain.lifecycle import AttemptOutcome
from reprocessing.models.lane import Lane
from reprocessing.models.letter import Letter
from reprocessing.models.run import Run, Wave
from reprocessing.models.safety import Breaker
from reprocessing.models.target import Target

#: Condition: the attempt is open and waits for an outcome. The target accepted the letter (`taken_at`), or it is the
#: letter's last attempt and the target's answer was lost (`deadline`).
AWAITS_OUTCOME: Final = Q(closed_at=None) & (Q(taken_at__isnull=False) | Q(deadline__isnull=False))

OUTCOMES = [(outcome.value, outcome.value) for outcome in AttemptOutcome]


class Attempt(models.Model):
    """One attempt to deliver a letter. A database trigger forbids changes of a column that has a value.

    Three columns are excepted: `holds_lane` may become false, `counts_as_failure` may become true, and `spared` may
    change.

    Attributes:
        epoch: the value of `Letter.epoch` when the attempt began.
        fence: the value of `Lane.fence` (the number of the lease) when the attempt began.
        taken_at: when the target accepted the letter; null: it did not, or the answer is not known.
        deadline: until when the letter's message may come back to a DLQ, or its consumer may report an outcome.
        returned_at: when the letter came back to a DLQ; this may be after `closed_at`.
        holds_lane: whether the lane's next letter waits until this attempt has an outcome.
        breaker_epoch: the value of `Breaker.epoch` when the letter was sent.
        counts_as_failure: how the circuit breaker counts the attempt: failure (true), success (false), neither (null).
        wave: the wave in which the letter was first sent; set only on a letter's first attempt in a run with waves.
        spared: whether the attempt failed because the target was down, and so does not count for `max_attempts`.
    """

    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="history", db_index=False)
    # The references below have no foreign key constraint, which would lock each referenced row once more for each
    # attempt. The statement that inserts an attempt reads these rows while it holds locks on lane and letter.
    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="attempts", db_constraint=False,
        db_index=False,
    )  # fmt: skip
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
        Breaker, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    breaker_epoch = models.BigIntegerField(db_default=0)
    wave = models.ForeignKey(
        Wave, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_constraint=False, db_index=False
    )
    counts_as_failure = models.BooleanField(null=True, blank=True)
    spared = models.BooleanField(db_default=False)

    class Meta:
        db_table = "redrive_attempt"
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="unique_attempt_number_per_letter"),
            models.UniqueConstraint(
                fields=["lane"], condition=Q(holds_lane=True), name="one_lane_holding_attempt_per_lane"
            ),
            models.CheckConstraint(
                condition=Q(outcome=None, closed_at=None) | Q(outcome__isnull=False, closed_at__isnull=False),
                name="closed_attempt_has_outcome",
            ),
            models.CheckConstraint(
                condition=Q(holds_lane=False) | Q(closed_at=None), name="closed_attempt_holds_no_lane"
            ),
        ]
        indexes = [
            models.Index(
                F("sent_message_id"), condition=Q(sent_message_id__isnull=False), name="attempts_by_sent_message_id"
            ),
            models.Index(F("target"), F("lane"), condition=Q(closed_at=None), name="open_attempts_by_target"),
            models.Index(
                F("letter"),
                condition=Q(outcome=AttemptOutcome.UNKNOWN.value, returned_at=None),
                name="unknown_attempts_by_letter",
            ),
            models.Index(F("run"), name="attempts_by_run"),
            models.Index(F("breaker"), F("id"), name="attempts_by_breaker"),
            models.Index(F("wave"), F("id"), condition=Q(wave__isnull=False), name="attempts_by_wave"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.no} of {self.letter_id}"


class ClaimState(models.TextChoices):
    """The state of a claim on an idempotency key."""

    HELD = "held", "held: a message with this key is being sent"
    FREE = "free", "free: the message failed; another message with this key may be sent"
    DELIVERED = "delivered", "delivered: a message with this key was delivered"
    DISCARDED = "discarded", "discarded: a person discarded the message"


class Claim(models.Model):
    """An idempotency key that a letter has reserved at a target, so that no other letter with the key is sent there.

    A letter whose idempotency key is its message id needs no claim, because no other letter has this key. `key_space`:
    the DLQ's id, because equal keys of two DLQs do not conflict. `until`: when the claim ends, if its letter is being
    sent (state `held`).
    """

    pk = models.CompositePrimaryKey("target_id", "key_space", "key_hash")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_index=False)
    key_space = models.TextField()
    key_hash = models.BinaryField()
    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="claims")
    state = models.TextField(choices=ClaimState.choices)
    body_hash = models.BinaryField()
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_claim"
        constraints = [
            models.CheckConstraint(
                condition=~Q(state=ClaimState.HELD) | Q(until__isnull=False), name="held_claim_has_end"
            )
        ]

    def __str__(self) -> str:
        return f"{self.state} by {self.letter_id}"
