"""Counts and sums that are updated with every change, so that no page counts millions of rows."""

from __future__ import annotations

from django.db import models


class _Kind(models.Model):
    """Base class: `n` letters have these values. `group_id` is 0 for letters in no failure group."""

    dlq_id = models.BigIntegerField()
    group_id = models.BigIntegerField()
    state = models.TextField()
    reason = models.TextField()
    presumed = models.BooleanField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.state}"


class LetterCount(_Kind):
    """The number of letters with these values, without the changes that are still in `LetterCountDelta`."""

    class Meta(_Kind.Meta):
        db_table = "redrive_letter_count"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_id", "group_id", "state", "reason", "presumed"], name="one_letter_count_per_kind"
            )
        ]


class LetterCountDelta(_Kind):
    """A change of a letter count by one statement; it is added to `LetterCount` later."""

    class Meta(_Kind.Meta):
        db_table = "redrive_letter_count_delta"


class _Hourly(models.Model):
    """Base class: `n` letters of a DLQ had the event `what` in an hour: `captured`, `failed`, or a finished state."""

    dlq_id = models.BigIntegerField()
    hour = models.DateTimeField()
    what = models.TextField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.what}"


class HourlyCount(_Hourly):
    """The number of events in an hour, without the changes that are still in `HourlyCountDelta`."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_hourly_count"
        constraints = [models.UniqueConstraint(fields=["dlq_id", "hour", "what"], name="one_count_per_hour_and_event")]


class HourlyCountDelta(_Hourly):
    """A change of an hourly count by one statement; it is added to `HourlyCount` later."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_hourly_count_delta"


class Metric(models.Model):
    """The value of one time series of a metric: a sum that only grows.

    Attributes:
        place: id of the DLQ or target; 0: the metric has neither.
        part: see `domain.aws.metric_names.Sample`.
        told: the part of `value` that was published to CloudWatch.
    """

    name = models.TextField()
    place = models.BigIntegerField()
    part = models.TextField()
    value = models.FloatField()
    told = models.FloatField(db_default=0)

    class Meta:
        db_table = "redrive_metric"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["name", "place", "part"], name="one_metric_per_name_and_label"),
            models.CheckConstraint(condition=models.Q(value__gte=0), name="metric_value_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.part}: {self.value:g}"
