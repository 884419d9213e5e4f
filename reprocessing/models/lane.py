"""A lane: the letters of one DLQ, source queue and ordering key, redriven in order, one at a time."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from reprocessing.domain.lifecycle import LanePhase
from reprocessing.models.dlq import STOP_IS_COMPLETE, DeadLetterQueue, Source
from reprocessing.models.run import Run
from reprocessing.models.safety import Breaker

_DUE = [LanePhase.READY.value, LanePhase.LEASED.value]
LANE_PHASES = [(phase.value, phase.value) for phase in LanePhase]


class Lane(models.Model):
    """One lane and its state. Only one worker at a time leases a lane.

    Attributes:
        due_at: when a ready lane may be leased, or when the lease of a leased lane ends.
        fence: fencing token, a number that rises with every lease: writes of an earlier lease are refused.
        owner: name of the worker that last leased the lane.
        single: whether the lane is for one letter only, which has no ordering key.
        hinted_until: until when the lane's task hint (a Celery task that names the lane) is valid; null: it has none.
        why: why the lane waits, as text for people; empty: no reason is recorded.
        highest_sent_sequence: highest sequence of a letter that was delivered, or may have been delivered.
        breaker: the circuit breaker for the lane's first unfinished letter; null: not determined yet.
        stopped_at: when a person stopped the lane; no worker leases a stopped lane.
    """

    # The column has no index of its own. PostgreSQL would use that index in place of the unique key's index, and read
    # all lanes of a DLQ to find one lane.
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="lanes", db_index=False)
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="lanes", db_index=False)
    key_hash = models.BinaryField()
    key = models.TextField(null=True, blank=True)
    single = models.BooleanField(db_default=False)
    # It needs no index of its own: `lanes_by_run` begins with this column.
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    phase = models.TextField(choices=LANE_PHASES, db_default=LanePhase.IDLE.value)
    due_at = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(db_default=0)
    owner = models.TextField(db_default="", blank=True)
    highest_sent_sequence = models.TextField(null=True, blank=True, db_collation="C")
    hinted_until = models.DateTimeField(null=True, blank=True)
    why = models.TextField(db_default="", blank=True)
    breaker = models.ForeignKey(
        Breaker, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.TextField(db_default="", blank=True)
    stop_reason = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_lane"
        constraints = [
            models.UniqueConstraint(fields=["dlq", "source", "key_hash"], name="one_lane_per_key"),
            models.CheckConstraint(
                condition=Q(phase__in=_DUE, due_at__isnull=False) | (~Q(phase__in=_DUE) & Q(due_at=None)),
                name="ready_or_leased_lane_has_due_time",
            ),
            models.CheckConstraint(condition=STOP_IS_COMPLETE, name="stopped_lane_has_person_and_reason"),
        ]
        permissions = [("stop_lane", "Can stop and resume key queues")]
        indexes = [
            # The lanes of a run in the order of their due times. PostgreSQL also reads this index to check the foreign
            # key when a run is deleted. It has no condition: without lanes that have no run, PostgreSQL with old
            # statistics would expect no entry, and scan this index where it should look up a lane by its id.
            models.Index(F("run"), F("due_at"), name="lanes_by_run"),
            # This index begins with the breaker. If it began with the run, PostgreSQL with old statistics would read
            # all lanes of a run for each breaker.
            models.Index(
                F("breaker"), F("run"), F("due_at"), condition=Q(phase=LanePhase.READY.value, breaker__isnull=False),
                name="ready_lanes_by_breaker",
            ),
            # With this index, a run's lanes are read breaker by breaker, so that lanes of open breakers are not read.
            models.Index(
                F("run"), F("breaker"), F("due_at"), condition=Q(phase=LanePhase.READY.value),
                name="ready_lanes_by_run",
            ),
            models.Index(
                F("hinted_until"),
                condition=Q(phase=LanePhase.READY.value, hinted_until__isnull=False),
                name="hinted_lanes",
            ),
            models.Index(F("dlq"), condition=Q(phase=LanePhase.HELD.value), name="held_lanes_by_dlq"),
            models.Index(F("due_at"), condition=Q(phase=LanePhase.LEASED.value), name="leased_lanes_by_due_time"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.key or f"lane {self.pk}"
