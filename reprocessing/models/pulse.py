"""The pulse of a queue: when a worker last took a task from it."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import QuerySet

# As it is read, not as the statement began: what another session committed meanwhile is not of its future.
_DATABASE_CLOCK = models.Func(function="clock_timestamp", output_field=models.DateTimeField())


class Pulse(models.Model):
    """One row per own queue.

    A worker's process can live on while it has stopped to consume; its heartbeats, if it sent any, would go on. Only
    a task that was consumed proves that tasks are consumed.
    """

    queue = models.TextField(primary_key=True)
    beaten_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~models.Q(queue=""), name="a_pulse_names_its_queue"),
        ]

    def __str__(self) -> str:
        return self.queue

    @staticmethod
    def beat(queue: str) -> None:
        """Remember that a task of this queue is consumed now.

        The database's clock says when, as it also says how long ago: a machine whose clock is wrong can neither
        feign a pulse nor hide one.
        """
        Pulse.objects.bulk_create(
            [Pulse(queue=queue, beaten_at=_DATABASE_CLOCK)],
            update_conflicts=True,
            unique_fields=["queue"],
            update_fields=["beaten_at"],
        )

    @staticmethod
    def ages(queue: str) -> QuerySet[Pulse, timedelta]:
        """How long ago a task of this queue was last consumed, by the database's clock; no row if never."""
        age = models.ExpressionWrapper(_DATABASE_CLOCK - models.F("beaten_at"), output_field=models.DurationField())
        return Pulse.objects.filter(queue=queue).values_list(age, flat=True)

    @staticmethod
    def is_recent(age: timedelta | None, *, within: timedelta) -> bool:
        """Whether a pulse of this age shows that tasks are consumed. One of the future, or none, shows nothing."""
        return age is not None and timedelta(0) <= age <= within
