"""Reports of consumers about single messages."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reprocessing.models.target import Target


class Verdict(models.TextChoices):
    """The outcome that a report states for a message."""

    DELIVERED = "delivered", "delivered: the consumer succeeded"
    FAILED = "failed", "failed: the consumer failed and will not try again"
    RETRYING = "retrying", "retrying: the consumer failed; the queue delivers the message again"


class Reporter(models.Model):
    """A consumer that may report outcomes of letters sent to `targets`. `token_hash`: SHA-256 of its token."""

    name = models.SlugField(unique=True, max_length=100)
    token_hash = models.BinaryField(unique=True)
    targets = models.ManyToManyField(Target, related_name="reporters", db_table="redrive_reporter_target")
    added_by = models.TextField()
    added_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_reporter"

    def __str__(self) -> str:
        return self.name


class Report(models.Model):
    """One consumer report about one message. `digest`: hash of the report, so that a repeated report is stored once.

    The report names the message by SQS message id, by redrive id (`public_id`) and attempt, or by both. `reporter`
    null: a consumer that shares the database wrote the report. `fingerprint`: equal for failures with the same cause.
    """

    reporter = models.ForeignKey(Reporter, null=True, blank=True, on_delete=models.PROTECT, related_name="reports")
    message_id = models.TextField(null=True, blank=True)
    public_id = models.UUIDField(null=True, blank=True)
    attempt_no = models.IntegerField(null=True, blank=True)
    verdict = models.TextField(choices=Verdict.choices)
    type = models.TextField(default="", blank=True)
    message = models.TextField(default="", blank=True)
    fingerprint = models.TextField(default="", blank=True)
    happened_at = models.DateTimeField()
    received_at = models.DateTimeField()
    digest = models.BinaryField(unique=True)

    class Meta:
        db_table = "redrive_report"
        constraints = [
            models.CheckConstraint(
                condition=Q(message_id__isnull=False) | Q(public_id__isnull=False), name="report_names_a_message"
            ),
            models.CheckConstraint(
                condition=Q(attempt_no=None) | Q(public_id__isnull=False), name="report_with_attempt_names_a_letter"
            ),
        ]
        indexes = [
            models.Index(F("message_id"), condition=Q(message_id__isnull=False), name="reports_by_message"),
            models.Index(F("public_id"), condition=Q(public_id__isnull=False), name="reports_by_letter"),
            models.Index(F("received_at"), name="reports_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.message_id or self.public_id}"
