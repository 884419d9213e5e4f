"""How many letters of a run may go before it is known how those went: one, ten, a hundred, all."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.models.run import Run


class Wave(models.Model):
    """One wave of a run; only its newest is open. `size` null: all that is left.

    `touched` letters were sent in it for the first time in their run, `failed` of them: written when it is settled.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="wave_history", db_index=False)
    no = models.IntegerField()
    size = models.IntegerField(null=True, blank=True)
    opened_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True, blank=True)
    touched = models.IntegerField(null=True, blank=True)
    failed = models.IntegerField(null=True, blank=True)

    class Meta:
        db_table = "redrive_wave"
        constraints = [
            models.UniqueConstraint(fields=["run", "no"], name="a_wave_has_one_number"),
            models.UniqueConstraint(fields=["run"], condition=Q(settled_at=None), name="a_run_has_one_open_wave"),
            models.CheckConstraint(condition=Q(size=None) | Q(size__gte=1), name="a_wave_has_letters"),
            models.CheckConstraint(
                condition=Q(settled_at=None, touched=None, failed=None)
                | Q(
                    settled_at__isnull=False, touched__isnull=False, failed__isnull=False, touched__gte=F("failed"),
                    failed__gte=0,
                ),
                name="a_settled_wave_says_how_it_went",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"wave {self.no} of {self.run_id}"
