"""Circuit breakers, rate classes and health checks."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.dlq import Jitter
from reprocessing.models.target import FASTEST, FORTNIGHT, SLOWEST, Target


class BreakerState(models.TextChoices):
    """Whether letters may go."""

    CLOSED = "closed", "closed: letters go"
    OPEN = "open", "open: nothing goes until its cooldown is over"
    HALF_OPEN = "half_open", "half open: one canary at a time"


class RateClass(models.Model):
    """Letters that a rule puts together, with a rate, a backoff and, at each target, a breaker of their own.

    `rate` letters a second over all workers (null: the target's alone); the backoff is seconds (null: the dlq's).
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
                condition=Q(rate=None) | Q(rate__gte=SLOWEST, rate__lte=FASTEST),
                name="a_class_has_a_rate_of_a_thousandth_to_a_million_or_none",
            ),
            models.CheckConstraint(
                condition=Q(burst=None) | Q(burst__gte=1, burst__lte=FASTEST), name="a_class_bursts_one_to_a_million"
            ),
            models.CheckConstraint(
                condition=Q(backoff_base=None, backoff_cap=None, backoff_jitter=None)
                | Q(
                    backoff_base__gte=0, backoff_base__lte=FORTNIGHT, backoff_cap__gte=0, backoff_cap__lte=FORTNIGHT,
                    backoff_base__isnull=False, backoff_cap__isnull=False, backoff_jitter__isnull=False,
                ),
                name="a_class_has_a_whole_backoff_or_none",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name


class Breaker(models.Model):
    """One row for each target, made with it (a trigger sees to it), and one for each class of letters that goes there.

    Policy: opens at `threshold` failures in a row, or when `ratio` of the last letters (`at_least` so many) failed;
    rests `cooldown` seconds, doubled with each canary that fails up to `cooldown_cap`; closes after `closes_after`
    canaries. The ramp starts at `ramp_from` of the rate (1: no ramp), and takes a step every `ramp_every` seconds.

    State: `epoch` rises with every change and with every canary; attempts carry the one they were sent in. Only the
    outcome of the canary of this very epoch moves a half-open breaker. `canary_until` is the canary's lease; null: the
    slot is free. `failing_since`: nothing has gone well there since; null: not known to fail. `ramp` is the share of
    the rate that is allowed now, `ramp_ill` what share failed at its last step.
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
    closes_after = models.IntegerField(db_default=3)
    ramp_from = models.FloatField(db_default=0.1)
    ramp_every = models.FloatField(db_default=10.0)

    state = models.TextField(choices=BreakerState.choices, db_default=BreakerState.CLOSED.value)
    since = models.DateTimeField(db_default=Now())
    why = models.TextField(db_default="", blank=True)
    epoch = models.BigIntegerField(db_default=0)
    rest = models.FloatField(db_default=0.0)
    retry_at = models.DateTimeField(null=True, blank=True)
    canary_until = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    successes = models.IntegerField(db_default=0)
    ramp = models.FloatField(db_default=0.1)
    ramp_at = models.DateTimeField(db_default=Now())
    ramp_why = models.TextField(db_default="", blank=True)
    ramp_ill = models.FloatField(db_default=0.0)

    class Meta:
        db_table = "redrive_breaker"
        permissions = [("reset_breaker", "Can open, close and half-open breakers by hand")]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "rate_class"], nulls_distinct=False, name="a_class_has_one_breaker_a_target"
            ),
            models.CheckConstraint(
                condition=Q(threshold__gte=1, at_least__gte=1, closes_after__gte=1, ratio__gt=0, ratio__lte=1),
                name="a_breaker_can_open_and_close",
            ),
            models.CheckConstraint(
                condition=Q(cooldown__gt=0, cooldown_cap__gte=F("cooldown"), cooldown_cap__lte=FORTNIGHT),
                name="a_breaker_rests_between_its_cooldown_and_its_cap",
            ),
            models.CheckConstraint(
                condition=Q(
                    ramp_from__gt=0,
                    ramp_from__lte=1,
                    ramp__gt=0,
                    ramp__lte=1,
                    ramp_every__gt=0,
                    ramp_every__lte=FORTNIGHT,
                ),
                name="a_ramp_is_a_share_of_the_rate",
            ),
            models.CheckConstraint(
                condition=Q(state=BreakerState.OPEN.value, retry_at__isnull=False)
                | (~Q(state=BreakerState.OPEN.value) & Q(retry_at=None)),
                name="an_open_breaker_says_until_when",
            ),
            models.CheckConstraint(
                condition=Q(canary_until=None) | Q(state=BreakerState.HALF_OPEN.value),
                name="only_a_half_open_breaker_has_a_canary",
            ),
            models.CheckConstraint(
                condition=Q(failing_since=None) | ~Q(state=BreakerState.CLOSED.value),
                name="a_closed_breaker_is_not_failing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target}, {self.rate_class}" if self.rate_class_id else str(self.target)


class CheckKind(models.TextChoices):
    """What is asked."""

    HTTP = "http", "http: an address answers as expected"
    ALARM = "alarm", "alarm: a CloudWatch alarm is in OK"
    DEPTH = "depth", "depth: the target queue holds at most so many messages"
    AGE = "age", "age: the target queue's oldest message is at most so many seconds old"
    POLICY = "policy", "policy: the target queue has a redrive policy"


class Health(models.TextChoices):
    """What was found. Only `healthy` lets letters go, and only while it is fresh."""

    UNKNOWN = "unknown", "unknown"
    HEALTHY = "healthy", "healthy"
    UNHEALTHY = "unhealthy", "unhealthy"


class HealthCheck(models.Model):
    """One check of one target; all of a target's must be healthy.

    `subject`: the URL or the alarm's name; `ceiling`: messages or seconds. Seconds: `every`, `max_age`, after which
    what was found no longer counts.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="checks", db_index=False)
    kind = models.TextField(choices=CheckKind.choices)
    subject = models.TextField(default="", blank=True)
    ceiling = models.FloatField(null=True, blank=True)
    expected_status = models.IntegerField(null=True, blank=True)
    every = models.FloatField(db_default=10.0)
    max_age = models.FloatField(db_default=30.0)
    verdict = models.TextField(choices=Health.choices, db_default=Health.UNKNOWN.value)
    detail = models.TextField(db_default="", blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_health_check"
        constraints = [
            models.UniqueConstraint(fields=["target", "kind", "subject"], name="a_target_is_asked_one_thing_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["http", "alarm"], ceiling=None) & ~Q(subject="")
                | Q(kind__in=["depth", "age"], ceiling__isnull=False, ceiling__gte=0, subject="")
                | Q(kind="policy", ceiling=None, subject=""),
                name="a_check_says_what_it_asks",
            ),
            models.CheckConstraint(
                condition=Q(every__gt=0, max_age__gte=F("every"), max_age__lte=FORTNIGHT),
                name="a_check_is_repeated_before_it_is_stale",
            ),
            models.CheckConstraint(
                condition=~Q(verdict=Health.HEALTHY.value) | Q(checked_at__isnull=False),
                name="nothing_is_healthy_unseen",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}".strip()
