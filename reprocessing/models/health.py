"""What must be well before letters go to a target, and what was found when it was last looked at."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.target import FORTNIGHT, Target


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
