"""Maintained counts and sums, so that no page counts millions of rows."""

from __future__ import annotations

from django.db import models


class _Kind(models.Model):
    """A number of letters of one kind. `group_id` 0: no group."""

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


class Tally(_Kind):
    """How many letters of a kind there are, without the differences in `TallyDelta`."""

    class Meta(_Kind.Meta):
        db_table = "redrive_tally"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_id", "group_id", "state", "reason", "presumed"], name="a_kind_of_letter_is_tallied_once"
            )
        ]


class TallyDelta(_Kind):
    """Change of a count by one statement."""

    class Meta(_Kind.Meta):
        db_table = "redrive_tally_delta"


class _Hourly(models.Model):
    """How many letters of a DLQ had an event in an hour: `captured`, `failed`, or a finished state."""

    dlq_id = models.BigIntegerField()
    hour = models.DateTimeField()
    what = models.TextField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.what}"


class Flow(_Hourly):
    """Events of an hour, without the differences in `FlowDelta`."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_flow"
        constraints = [models.UniqueConstraint(fields=["dlq_id", "hour", "what"], name="an_hour_is_counted_once")]


class FlowDelta(_Hourly):
    """Events of one statement."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_flow_delta"


class Metric(models.Model):
    """A sum that only grows. `place`: id of a DLQ or target, 0: none. `part`: see `domain.aws.metric_names.Sample`.

    `told`: the part of `value` that was published to CloudWatch.
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
            models.UniqueConstraint(fields=["name", "place", "part"], name="a_metric_is_summed_once"),
            models.CheckConstraint(condition=models.Q(value__gte=0), name="a_sum_only_grows"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.part}: {self.value:g}"
