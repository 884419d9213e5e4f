"""How many ticks a database has seen, which only rises: one that was restored from a backup has seen fewer."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Tide(models.Model):
    """One row. `database` names this database and whatever is restored from it; `ticks` of beat have been committed."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    database = models.UUIDField(db_default=models.Func(function="gen_random_uuid", output_field=models.UUIDField()))
    ticks = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "redrive_tide"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(id=1), name="there_is_one_tide")]

    def __str__(self) -> str:
        return f"{self.ticks} ticks"
