"""Counts that are kept, so that nothing counts a million letters."""

from __future__ import annotations

from django.db import models


class _Kind(models.Model):
    """A kind of letter, and a number of them: of a dlq and a group (0: of none), in a state, for a reason."""

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
    """How many letters of a kind there are."""

    class Meta(_Kind.Meta):
        db_table = "redrive_tally"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_id", "group_id", "state", "reason", "presumed"], name="a_kind_of_letter_is_tallied_once"
            )
        ]


class TallyDelta(_Kind):
    """What one statement added to a tally, or took from it."""

    class Meta(_Kind.Meta):
        db_table = "redrive_tally_delta"


class _Hourly(models.Model):
    """What letters of a dlq came to within an hour (captured, failed, or a finished state), and how many."""

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
    """How many letters came to it."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_flow"
        constraints = [models.UniqueConstraint(fields=["dlq_id", "hour", "what"], name="an_hour_is_counted_once")]


class FlowDelta(_Hourly):
    """What one statement added to it."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_flow_delta"


class Metric(models.Model):
    """A sum that only grows. `place`: the dlq's or the target's id, 0: of none; `part`: see `domain.metric.Sample`.

    `told` is how much of it CloudWatch has been told.
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
