"""Targets (where letters are redriven to), checks whether target queues are empty, and reports of consumers."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.targets.target_kind import SYNCHRONOUS, TargetKind

#: Min and max of a target's rate, in letters a second: one letter in 17 minutes, and more than SQS accepts.
MIN_RATE, MAX_RATE = 0.001, 1_000_000
#: Max seconds of any delay: the longest retention of SQS.
MAX_SECONDS = 14 * 86_400
#: Seconds in which a FIFO queue drops a repeated deduplication id (AWS: Amazon SQS message deduplication ID).
DEDUPLICATED_FOR = 300.0


#: Max seconds of `timeout`, because AWS ends a Lambda function after 15 minutes.
MAX_TIMEOUT = 900


class Proof(models.TextChoices):
    """The evidence of delivery that is required for a target (users see: outcome)."""

    ACCEPTED = "accepted", "accepted: the target accepted the message"
    ABSENCE = "absence", "absence: the message did not come back (presumed)"
    ACKNOWLEDGED = "acknowledged", "acknowledged: the consumer reported success"


class Advance(models.TextChoices):
    """When the next letter of a lane may be sent."""

    ACCEPTED = "accepted", "when the target accepted the previous message"
    SETTLED = "settled", "when the previous message's outcome is known"


class Target(models.Model):
    """A target, where letters are redriven to. Durations are seconds, sizes bytes.

    Attributes:
        arn: the ARN; of an HTTP endpoint, the URL.
        rate: letters a second over all workers; null: no limit.
        burst: letters that may be sent at once; null: the letters of one second at `rate`.
        window: for how long a failed letter may come back, or the consumer's report may arrive.
        visibility: the visibility timeout of a target queue.
        watched_by: the watched DLQ to which failed messages of the target go; null: it is not watched.
        size_limit: largest message, including attributes.
        timeout: how long an HTTP endpoint or Lambda function may take to answer.
        answers: what the endpoint's status codes mean, as domain.targets.http_responses reads it.
        secret: name of the secret that signs HTTP requests, in REDRIVE_SECRETS.
        confirmed_fanout: how many other subscribers of a topic or bus also get each letter, as a person confirmed.
    """

    kind = models.TextField(choices=[(kind.value, kind.label) for kind in TargetKind], default=TargetKind.SQS.value)
    arn = models.TextField(unique=True)
    url = models.TextField()
    region = models.TextField()
    fifo = models.BooleanField(default=False)
    proof = models.TextField(choices=Proof.choices, default=Proof.ACCEPTED)
    advance = models.TextField(choices=Advance.choices, default=Advance.ACCEPTED)
    rate = models.FloatField(null=True, blank=True)
    burst = models.FloatField(null=True, blank=True)
    window = models.FloatField(default=0)
    visibility = models.IntegerField(default=30)
    size_limit = models.IntegerField(default=1_048_576)
    watched_by = models.ForeignKey(
        "DeadLetterQueue", null=True, blank=True, on_delete=models.PROTECT, related_name="watched_targets"
    )
    role_arn = models.TextField(default="", blank=True)
    timeout = models.FloatField(default=30)
    answers = models.TextField(default="", blank=True)
    content_type = models.TextField(default="", blank=True)
    secret = models.TextField(default="", blank=True)
    strips_eta = models.BooleanField(default=False)
    strips_expires = models.BooleanField(default=False)
    resets_retries = models.BooleanField(default=False)
    renews_id = models.BooleanField(default=False)
    confirmed_fanout = models.IntegerField(null=True, blank=True)

    class Meta:
        db_table = "redrive_target"
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    kind__in=[kind.value for kind in TargetKind], proof__in=Proof.values, advance__in=Advance.values
                ),
                name="target_choices_are_known",
            ),
            models.CheckConstraint(
                condition=Q(rate=None) | Q(rate__gte=MIN_RATE, rate__lte=MAX_RATE),
                name="target_rate_between_0_001_and_1000000",
            ),
            models.CheckConstraint(
                condition=Q(burst=None) | Q(burst__gte=1, burst__lte=MAX_RATE),
                name="target_burst_between_1_and_1000000",
            ),
            models.CheckConstraint(
                condition=Q(window__gte=0, window__lte=MAX_SECONDS), name="return_window_at_most_14_days"
            ),
            models.CheckConstraint(
                condition=~Q(proof=Proof.ABSENCE) | Q(watched_by__isnull=False), name="proof_by_absence_needs_dlq"
            ),
            models.CheckConstraint(
                condition=Q(timeout__gt=0, timeout__lte=MAX_TIMEOUT), name="target_timeout_at_most_15_minutes"
            ),
            models.CheckConstraint(
                condition=~Q(kind__in=[TargetKind.TOPIC.value, TargetKind.BUS.value])
                | Q(confirmed_fanout__isnull=False, confirmed_fanout__gte=0),
                name="topic_and_bus_have_confirmed_fanout",
            ),
        ]

    def __str__(self) -> str:
        return resource_name(self.arn)

    @property
    def is_synchronous(self) -> bool:
        """Return whether the target answers each letter separately, not in a batch."""
        return self.kind in SYNCHRONOUS

    @property
    def holds_lane_after_unknown(self) -> bool:
        """Return whether the lane waits after an attempt with unknown outcome, while its letter may still come back."""
        return self.proof != Proof.ACCEPTED and self.advance == Advance.SETTLED

    @property
    def copy_window(self) -> float:
        """Return for how many seconds after an attempt with unknown outcome the target may still have the message.

        `settlement_effects.COPY_WINDOW` computes the same in SQL.
        """
        if self.window > 0 or self.proof != Proof.ACCEPTED:
            return self.window
        return max(DEDUPLICATED_FOR, self.visibility, self.timeout)


class TargetCheck(models.Model):
    """One check of a target queue's message counts. The request to SQS began at `seen_at` and took `took` seconds.

    `empty`: no message was visible or delayed. Of checks in a row that were not empty, only the first is stored.
    `idle_since`: since when all checks have found no message, not even in flight; null: this check found a message.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="sightings")
    seen_at = models.DateTimeField()
    took = models.FloatField(db_default=0.0)
    empty = models.BooleanField(db_default=True)
    idle_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_target_check"
        indexes = [
            models.Index(F("target"), F("seen_at").desc(), name="target_checks_newest_first"),
            models.Index(
                F("target"), F("seen_at").desc(), condition=Q(idle_since__isnull=False), name="target_checks_while_idle"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target} at {self.seen_at}"


class Verdict(models.TextChoices):
    """The outcome of a message that a consumer reports."""

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
    """One report of a consumer about the outcome of one message.

    The report names the message by SQS message id, by redrive id (`public_id`) and attempt, or by both. `reporter`
    null: a consumer that shares the database wrote the report. `fingerprint`: equal for failures with the same cause.
    `digest`: hash of the report, by which a repeated report is recognised and not stored again.
    """

    # It needs no index of its own: `reports_by_reporter` begins with this column.
    reporter = models.ForeignKey(
        Reporter, null=True, blank=True, on_delete=models.PROTECT, related_name="reports", db_index=False
    )
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
            models.Index(F("reporter"), F("received_at"), name="reports_by_reporter"),
            models.Index(F("fingerprint"), F("id"), condition=~Q(fingerprint=""), name="reports_by_fingerprint"),
            models.Index(F("verdict"), F("id"), name="reports_by_verdict"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.message_id or self.public_id}"
