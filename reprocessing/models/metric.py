"""What is counted over all processes and restarts: one row for each part of a metric at a place."""

from __future__ import annotations

from django.db import models


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
