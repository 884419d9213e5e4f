"""Counts that are kept, so that nobody counts a million letters to see how many there are.

A trigger on the letters writes down the differences that each statement makes, as rows that nobody updates: workers
never wait for one another over a count. Now and then the differences are folded into the counts; who reads sums both.
"""

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
