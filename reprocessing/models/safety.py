"""Circuit breakers, rate classes, health checks, and the stop of all sends."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import Jitter
from reprocessing.models.target import MAX_RATE, MAX_SECONDS, MIN_RATE, Target


class BreakerState(models.TextChoices):
    """The state of a circuit breaker."""

    CLOSED = "closed", "closed: messages are sent"
    OPEN = "open", "open: nothing is sent until the cooldown ends"
    HALF_OPEN = "half_open", "half open: one canary at a time"


#: Condition of database constraints: the person and the reason are not empty.
PERSON_AND_REASON = ~Q(by="") & ~Q(reason="")
#: Condition of database constraints: the three backoff fields are all set, or all null.
BACKOFF_IS_COMPLETE = Q(backoff_base=None, backoff_cap=None, backoff_jitter=None) | Q(
    backoff_base__gte=0, backoff_base__lte=MAX_SECONDS, backoff_cap__gte=0, backoff_cap__lte=MAX_SECONDS,
    backoff_base__isnull=False, backoff_cap__isnull=False, backoff_jitter__isnull=False,
)  # fmt: skip


class RateClass(models.Model):
    """A rate class, which rules assign to letters. It has a rate, a backoff, and a circuit breaker for each target.

    `rate`: letters a second over all workers; null: the target's rate. `burst`: letters that may be sent at once; null:
    the letters of one second. `backoff_base`, `backoff_cap`: seconds; null: the DLQ's backoff.
    """

    name = models.SlugField(unique=True, max_length=100)
    rate = models.FloatField(null=True, blank=True)
    burst = models.FloatField(null=True, blank=True)
    backoff_base = models.FloatField(null=True, blank=True)
    backoff_cap = models.FloatField(null=True, blank=True)
    backoff_jitter = models.TextField(choices=Jitter.choices, null=True, blank=True)

    class Meta:
        db_table = "redrive_rate_class"
        verbose_name_plural = "rate classes"
        constraints = [
            models.CheckConstraint(
                condition=Q(rate=None) | Q(rate__gte=MIN_RATE, rate__lte=MAX_RATE),
                name="class_rate_between_0_001_and_1000000",
            ),
            models.CheckConstraint(
                condition=Q(burst=None) | Q(burst__gte=1, burst__lte=MAX_RATE), name="class_burst_between_1_and_1000000"
            ),
            models.CheckConstraint(condition=BACKOFF_IS_COMPLETE, name="class_backoff_complete_or_absent"),
        ]

    def __str__(self) -> str:
        return self.name


class Breaker(models.Model):
    """The circuit breaker of a target (created by a database trigger), or of one rate class (`RateClass`) at a target.

    Durations are seconds.

    Attributes:
        threshold: the breaker opens after this many failures in a row.
        ratio: the breaker opens if at least this share of the newest letters failed; `at_least`: min number of letters.
        cooldown: the first cooldown. It doubles with each failed canary, up to `cooldown_cap`.
        canaries_to_close: the breaker closes after this many canaries in a row succeeded.
        ramp_from: the share of the rate with which the ramp-up starts; 1: no ramp-up.
        ramp_every: time between two steps of the ramp-up.
        epoch: a number that rises with every change of state and every canary. A half-open breaker ignores the outcomes
            of canaries that have an earlier number.
        current_cooldown: length of the present or last cooldown.
        retry_at: when an open breaker may send a canary.
        canary_until: until when the outcome of the last canary is awaited, so that no other canary is sent.
        successes: how many canaries in a row succeeded.
        failing_since: when the breaker opened; null: it is closed, or a canary has succeeded since.
        ramp: the share of the rate that is allowed now.
        ramp_failure_ratio: the share of failed letters when the last step of the ramp-up was taken, at `ramp_at`.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="breakers", db_index=False)
    rate_class = models.ForeignKey(
        RateClass, null=True, blank=True, on_delete=models.PROTECT, related_name="breakers", db_index=False
    )
    threshold = models.IntegerField(db_default=5)
    ratio = models.FloatField(db_default=0.5)
    at_least = models.IntegerField(db_default=20)
    cooldown = models.FloatField(db_default=30.0)
    cooldown_cap = models.FloatField(db_default=600.0)
    canaries_to_close = models.IntegerField(db_default=3)
    ramp_from = models.FloatField(db_default=0.1)
    ramp_every = models.FloatField(db_default=10.0)

    state = models.TextField(choices=BreakerState.choices, db_default=BreakerState.CLOSED.value)
    since = models.DateTimeField(db_default=Now())
    why = models.TextField(db_default="", blank=True)
    epoch = models.BigIntegerField(db_default=0)
    current_cooldown = models.FloatField(db_default=0.0)
    retry_at = models.DateTimeField(null=True, blank=True)
    canary_until = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    successes = models.IntegerField(db_default=0)
    ramp = models.FloatField(db_default=0.1)
    ramp_at = models.DateTimeField(db_default=Now())
    ramp_reason = models.TextField(db_default="", blank=True)
    ramp_failure_ratio = models.FloatField(db_default=0.0)

    class Meta:
        db_table = "redrive_breaker"
        permissions = [("reset_breaker", "Can reset circuit breakers")]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "rate_class"], nulls_distinct=False, name="one_breaker_per_target_and_class"
            ),
            models.CheckConstraint(
                condition=Q(threshold__gte=1, at_least__gte=1, canaries_to_close__gte=1, ratio__gt=0, ratio__lte=1),
                name="breaker_limits_are_reachable",
            ),
            models.CheckConstraint(
                condition=Q(cooldown__gt=0, cooldown_cap__gte=F("cooldown"), cooldown_cap__lte=MAX_SECONDS),
                name="breaker_cooldown_at_most_cap_at_most_14_days",
            ),
            models.CheckConstraint(
                condition=Q(
                    ramp_from__gt=0,
                    ramp_from__lte=1,
                    ramp__gt=0,
                    ramp__lte=1,
                    ramp_every__gt=0,
                    ramp_every__lte=MAX_SECONDS,
                ),
                name="ramp_between_0_and_1",
            ),
            models.CheckConstraint(
                condition=Q(state=BreakerState.OPEN.value, retry_at__isnull=False)
                | (~Q(state=BreakerState.OPEN.value) & Q(retry_at=None)),
                name="only_open_breaker_has_retry_time",
            ),
            models.CheckConstraint(
                condition=Q(canary_until=None) | Q(state=BreakerState.HALF_OPEN.value),
                name="only_half_open_breaker_has_canary",
            ),
            models.CheckConstraint(
                condition=Q(failing_since=None) | ~Q(state=BreakerState.CLOSED.value),
                name="closed_breaker_is_not_failing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target}, {self.rate_class}" if self.rate_class_id else str(self.target)


class CheckKind(models.TextChoices):
    """The kind of a health check: what it checks about a target."""

    HTTP = "http", "http: a URL returns the expected status"
    ALARM = "alarm", "alarm: a CloudWatch alarm is OK"
    DEPTH = "depth", "depth: the target queue holds at most so many messages"
    AGE = "age", "age: the target queue's oldest message is at most so many seconds old"
    POLICY = "policy", "policy: the target queue has a redrive policy"


class HealthStatus(models.TextChoices):
    """The result of a health check. Letters are sent only if the result is `healthy`, and not older than `max_age`."""

    UNKNOWN = "unknown", "unknown"
    HEALTHY = "healthy", "healthy"
    UNHEALTHY = "unhealthy", "unhealthy"


class HealthCheck(models.Model):
    """One health check of a target. Letters are sent only if all checks of the target are healthy.

    Attributes:
        subject: the URL or the alarm's name; empty for other kinds.
        ceiling: of kind depth, max messages in the queue; of kind age, max seconds; null for other kinds.
        expected_status: of kind http, the expected HTTP status; null: 200 to 299.
        every: seconds between two checks.
        max_age: seconds; an older result counts as unknown.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="checks", db_index=False)
    kind = models.TextField(choices=CheckKind.choices)
    subject = models.TextField(default="", blank=True)
    ceiling = models.FloatField(null=True, blank=True)
    expected_status = models.IntegerField(null=True, blank=True)
    every = models.FloatField(db_default=10.0)
    max_age = models.FloatField(db_default=30.0)
    verdict = models.TextField(choices=HealthStatus.choices, db_default=HealthStatus.UNKNOWN.value)
    detail = models.TextField(db_default="", blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_health_check"
        constraints = [
            models.UniqueConstraint(fields=["target", "kind", "subject"], name="one_check_per_target_kind_and_subject"),
            models.CheckConstraint(
                condition=Q(kind__in=["http", "alarm"], ceiling=None) & ~Q(subject="")
                | Q(kind__in=["depth", "age"], ceiling__isnull=False, ceiling__gte=0, subject="")
                | Q(kind="policy", ceiling=None, subject=""),
                name="check_has_fields_of_its_kind",
            ),
            models.CheckConstraint(
                condition=Q(every__gt=0, max_age__gte=F("every"), max_age__lte=MAX_SECONDS),
                name="check_repeats_before_max_age",
            ),
            models.CheckConstraint(
                condition=~Q(verdict=HealthStatus.HEALTHY.value) | Q(checked_at__isnull=False),
                name="healthy_check_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}".strip()


class GlobalStop(models.Model):
    """A row that stops all sends while it exists. Row 1: a person stopped them. Row 2: they are held after a restore.

    The service writes row 2 when PostgreSQL was restored from a backup. Only `manage.py after_restore release` deletes
    row 2. `restored_to`: the time of the restored backup, in row 2.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.TextField()
    reason = models.TextField()
    restored_to = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_global_stop"
        constraints = [
            models.CheckConstraint(
                condition=Q(id=1, restored_to=None) | Q(id=2, restored_to__isnull=False),
                name="one_stop_by_hand_one_by_restore",
            ),
            models.CheckConstraint(condition=PERSON_AND_REASON, name="global_stop_has_person_and_reason"),
        ]
        default_permissions = ("view",)
        permissions = [("stop_sends", "Can stop and resume all sends")]

    def __str__(self) -> str:
        return f"stopped by {self.by}"
