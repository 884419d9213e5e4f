"""What beat's tick remembers from one to the next: how many hints to give, and when it last swept."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Dispatch(models.Model):
    """One row. `width`: lanes to hint at a time; `lifetime`: seconds that a hint waits for a worker."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    width = models.IntegerField()
    lifetime = models.FloatField()
    swept_at = models.DateTimeField(db_default=Now())
    purged_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_dispatch"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="there_is_one_dispatch")]

    def __str__(self) -> str:
        return f"{self.width} lanes for {self.lifetime:g} s"
