"""The bytes of letters as captured and as edited, the copies of letters in DLQs, encryption keys, and erasures."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.attempt import Attempt
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.letter import Letter
from reprocessing.models.safety import PERSON_AND_REASON


class Payload(models.Model):
    """The bytes of a letter as received: body, `attributes` (packed), and SQS's own attributes (`system`).

    If encryption is on, the bytes are encrypted (`domain.payloads.sealing`), and `store.payloads.content` decrypts
    them. A trigger forbids changes, except that the bytes are encrypted with another key.
    """

    letter = models.OneToOneField(Letter, primary_key=True, on_delete=models.CASCADE, related_name="payload")
    body = models.BinaryField()
    attributes = models.BinaryField()
    system = models.JSONField()

    class Meta:
        db_table = "redrive_payload"
        default_permissions = ()  # nobody changes payloads; a letter's page shows them
        permissions = [("view_payload", "Can view payloads"), ("reveal_payload", "Can reveal masked values")]

    def __str__(self) -> str:
        return f"payload of {self.letter_id}"


class Revision(models.Model):
    """One edit of one letter. A trigger forbids changes, except that the bytes are encrypted with another key.

    `body`, `attributes` (packed by `domain.message.envelope`): the bytes that are sent, not the captured bytes.
    `previous_body_hash`: hash of the body before the edit. `idempotency_key`: the new key; null: unchanged.
    """

    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    no = models.IntegerField()
    body = models.BinaryField()
    attributes = models.BinaryField()
    body_hash = models.BinaryField()
    previous_body_hash = models.BinaryField()
    size = models.IntegerField()
    idempotency_key = models.TextField(null=True, blank=True)
    by = models.TextField()
    reason = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_revision"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["letter", "no"], name="unique_revision_number_per_letter"),
            models.CheckConstraint(condition=Q(no__gte=1), name="revision_number_at_least_1"),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="revision_has_person_and_reason"),
        ]
        indexes = [
            models.Index("body_hash", name="revisions_by_body_hash"),
            models.Index("previous_body_hash", name="revisions_by_previous_hash"),
        ]

    def __str__(self) -> str:
        return f"revision {self.no} of {self.letter_id}"


class DlqCopyState(models.TextChoices):
    """The state of a copy (a message in a DLQ that has a letter)."""

    HELD = "held", "held: invisible in the DLQ until the message is finished"
    DELETE = "delete", "to be deleted"
    GONE = "gone", "deleted"


class DlqCopy(models.Model):
    """A message in a DLQ that has a letter: the captured message, or a message that came back after an attempt.

    Attributes:
        attempt: the attempt after which the letter's message came back; null: the copy is the captured message.
        handle: receipt handle of the last receive.
        visible_until: when the copy becomes visible in the DLQ again.
        extended: whether the service has made the copy's visibility timeout longer since it received the copy.
        receives: how often this service received the copy from the DLQ.
        expires_at: when SQS deletes the copy at the end of the retention; null: the copy came back after an attempt.
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
    expires_at = models.DateTimeField(null=True, blank=True)

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
            models.Index(F("dlq"), F("message_id"), condition=Q(state=DlqCopyState.DELETE), name="copies_to_delete"),
            models.Index(
                F("dlq"),
                F("visible_until"),
                condition=Q(state=DlqCopyState.HELD),
                include=["extended"],
                name="held_copies_by_visibility",
            ),
            models.Index(F("dlq"), F("expires_at"), condition=Q(state=DlqCopyState.HELD), name="held_copies_by_expiry"),
            models.Index(
                F("dlq"), F("gone_at"), condition=Q(state=DlqCopyState.GONE), name="gone_copies_by_dlq_and_time"
            ),
            models.Index(F("attempt"), condition=Q(attempt__isnull=False), name="copies_by_attempt"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} ({self.state})"


class PayloadKey(models.Model):
    """A data key, which encrypts (seals) the payloads that were captured from one DLQ on one day.

    A key with a DLQ, but without a day, computes the keyed hashes of the DLQ's search values. The key without DLQ and
    day is the installation's key: it seals consumer reports and filters, and computes digests.

    Attributes:
        wrapped: the data key, encrypted by the key `wrapped_by` of REDRIVE_PAYLOAD_KEYS; null: a person destroyed it.
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
                condition=Q(dlq__isnull=False) | Q(dlq=None, day=None, destroyed_at=None),
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
    """One erasure of all data about a value, such as a customer's key. The value itself is not stored.

    `digest`: keyed hash of the DLQs and the value, by which a repeated command finds and continues the erasure.
    `counts`: how many rows were changed, by kind of row.
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
