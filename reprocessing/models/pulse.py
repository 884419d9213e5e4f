"""The pulse of a queue: when a worker last took a task from it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models


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
    def beat(queue: str, *, now: datetime) -> None:
        """Remember that a task of this queue was consumed `now`; an earlier instant never overwrites a later one."""
        Pulse.objects.bulk_create([Pulse(queue=queue, beaten_at=now)], ignore_conflicts=True)
        Pulse.objects.filter(queue=queue, beaten_at__lt=now).update(beaten_at=now)

    @staticmethod
    def age(queue: str, *, now: datetime) -> timedelta | None:
        """How long ago a task of this queue was last consumed; None if never."""
        beaten_at = Pulse.objects.filter(queue=queue).values_list("beaten_at", flat=True).first()
        return None if beaten_at is None else now - beaten_at
