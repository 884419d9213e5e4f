"""The values that the dashboard's table shows for one DLQ, and the states by which the table is filtered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils.functional import cached_property

from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.models.safety import BreakerState
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.dlqs.message_counts import MessageCounts, Trend
from reprocessing.store.runs.open_runs import StartedRun
from reprocessing.store.safety.breaker_status import BreakerStatus

#: Messages of one run are counted only up to this number, because the page is refreshed every few seconds.
MAX_COUNTED: Final = 10_000
#: A DLQ is marked as expiring if SQS deletes an unfinished message within this number of seconds.
SOON: Final = 86_400.0


class RowState(StrEnum):
    """A state by which the table is filtered; a DLQ can have several. The filter lists the states in this order."""

    STOPPED = "stopped"
    BREAKER = "breaker"
    EXPIRING = "expiring"
    PROBLEM = "problem"
    UNCAPTURED = "uncaptured"
    PAUSED = "paused"
    AWS = "aws"
    REVIEW = "review"
    PROGRESS = "progress"
    DELIVERED = "delivered"
    FAILED = "failed"
    NOTHING = "nothing"
    AUTOMATIC = Mode.AUTOMATIC.value
    MANUAL = Mode.MANUAL.value
    OBSERVE = Mode.OBSERVE.value

    @property
    def label(self) -> str:
        """Return the state's name in the filter's list."""
        return _LABELS[self]


_LABELS: Final = {
    RowState.STOPPED: "stopped", RowState.BREAKER: "circuit breaker open or half open",
    RowState.EXPIRING: "expires within 24 h",
    RowState.PROBLEM: "problem", RowState.UNCAPTURED: "not captured", RowState.PAUSED: "run paused",
    RowState.AWS: "redrive by AWS", RowState.REVIEW: "needs review", RowState.PROGRESS: "in progress",
    RowState.DELIVERED: "delivered in 24 h", RowState.FAILED: "failed in 24 h", RowState.NOTHING: "nothing to do",
    RowState.AUTOMATIC: "mode automatic", RowState.MANUAL: "mode manual", RowState.OBSERVE: "mode observe",
}  # fmt: skip


@dataclass(frozen=True)  # without slots, because of cached_property
class DlqRow:
    """The values of one DLQ in the table. Computed values are cached, because a page uses each several times.

    Attributes:
        now: PostgreSQL's time, from which ages are counted.
        oldest: when the oldest unfinished or parked message was first sent.
        expires_at: when SQS deletes the first of its copies of unfinished messages.
        uncaptured: number of messages in SQS that are not captured; 0 if the DLQ is captured automatically.
        runs: the running and paused runs, with up to `MAX_COUNTED` + 1 messages each.
        breakers: the circuit breakers of the DLQ's targets.
        rate: messages sent per second in the last 10 s.
        teams: ids of the DLQ's teams.
    """

    status: DlqStatus
    now: datetime
    counts: MessageCounts
    trend: Trend
    oldest: datetime | None
    expires_at: datetime | None
    uncaptured: int
    runs: tuple[StartedRun, ...]
    breakers: tuple[BreakerStatus, ...]
    rate: float
    teams: frozenset[int]

    @cached_property
    def depth(self) -> int | None:
        """Return the number of messages in SQS, visible and in flight; None: SQS was not asked yet."""
        status = self.status
        return None if status.depth_at is None else (status.depth_visible or 0) + (status.depth_in_flight or 0)

    @cached_property
    def unplanned(self) -> int:
        """Return how many captured or queued messages wait for the start of a run.

        The number is 0 if a run is running, or is paused and has messages. Messages that an aborted run left in state
        queued wait for the next run.
        """
        if self.status.mode == Mode.AUTOMATIC or self._running or self.paused:
            return 0
        return self.counts.captured + self.counts.open - self.counts.sent

    @cached_property
    def paused(self) -> tuple[StartedRun, ...]:
        """Return the paused runs that have messages."""
        return tuple(run for run in self.runs if run.state == RunState.PAUSED and run.unfinished)

    @cached_property
    def review(self) -> int:
        """Return how many messages need a person: parked, in a paused run, or waiting for the start of a run.

        If `is_review_lower_bound`, the true number may be higher.
        """
        return self.counts.parked + self._waits_for_person

    @cached_property
    def is_review_lower_bound(self) -> bool:
        """Return whether the number of messages that need a person may be higher than `review`."""
        return self._is_capped and bool(self._running)

    @cached_property
    def progress(self) -> int:
        """Return how many captured messages are in progress: unfinished, and not waiting for a person.

        If `is_progress_lower_bound`, the true number may be higher.
        """
        unfinished = max(0, self.counts.captured + self.counts.open - self._waits_for_person)
        return min(unfinished, _counted(self._running)) if self._is_capped else unfinished

    @cached_property
    def is_progress_lower_bound(self) -> bool:
        """Return whether the number of messages in progress may be higher than `progress`."""
        return self._is_capped and any(run.unfinished > MAX_COUNTED for run in self._running)

    @cached_property
    def _waits_for_person(self) -> int:
        """Return how many unfinished messages wait for a person.

        Without a running run, these are all unfinished messages. Of a large paused run, only a part is counted.
        """
        if self._is_capped and not self._running:
            return self.counts.captured + self.counts.open
        return self.unplanned + _counted(self.paused)

    @cached_property
    def _is_capped(self) -> bool:
        """Return whether a paused run has more messages than were counted."""
        return any(run.unfinished > MAX_COUNTED for run in self.paused)

    @cached_property
    def _running(self) -> tuple[StartedRun, ...]:
        """Return the running runs. Outside mode automatic, an automatic run without messages is left out."""
        may_idle = self.status.mode != Mode.AUTOMATIC
        return tuple(
            run
            for run in self.runs
            if run.state == RunState.RUNNING and not (may_idle and run.kind == RunKind.AUTOMATIC and not run.unfinished)
        )

    @cached_property
    def left(self) -> float | None:
        """Return in how many seconds SQS deletes the first of its copies of unfinished messages; None: SQS has none."""
        return None if self.expires_at is None else (self.expires_at - self.now).total_seconds()

    @cached_property
    def age(self) -> float | None:
        """Return the age of the oldest message in seconds; None: no message is unfinished or parked."""
        return None if self.oldest is None else (self.now - self.oldest).total_seconds()

    @cached_property
    def not_closed(self) -> tuple[BreakerStatus, ...]:
        """Return the circuit breakers that are not closed: first the open ones, then the half open ones."""
        found = (breaker for breaker in self.breakers if breaker.state != BreakerState.CLOSED)
        return tuple(sorted(found, key=lambda breaker: breaker.state != BreakerState.OPEN))

    @cached_property
    def allowed(self) -> float | None:
        """Return how many messages per second may be sent now to all targets together; None: no limit."""
        rates = [breaker.allowed for breaker in self.breakers if breaker.rate_class is None]
        return None if None in rates else sum(rate for rate in rates if rate is not None)

    @cached_property
    def states(self) -> frozenset[RowState]:
        """Return all states by which a filter finds this DLQ. `NOTHING` is one of them if no state needs attention."""
        status, found = self.status, {RowState(self.status.mode)}
        holds = {
            RowState.STOPPED: status.stopped_at is not None, RowState.BREAKER: bool(self.not_closed),
            RowState.EXPIRING: self.left is not None and self.left < SOON, RowState.PROBLEM: bool(status.last_error),
            RowState.UNCAPTURED: self.uncaptured > 0, RowState.AWS: bool(status.native),
            RowState.PAUSED: bool(self.paused), RowState.REVIEW: self.review > 0,
            RowState.PROGRESS: self.progress > 0, RowState.DELIVERED: self.trend.delivered > 0,
            RowState.FAILED: self.trend.failed > 0,
        }  # fmt: skip
        found |= {state for state, is_so in holds.items() if is_so}
        return frozenset(found if found & _TO_DO else found | {RowState.NOTHING})

    @cached_property
    def urgency(self) -> tuple[bool, bool, int, str]:
        """Return the sort key of the table's default order, in which the most urgent DLQ comes first."""
        states = self.states
        is_held_back = RowState.BREAKER in states or RowState.PAUSED in states
        return (not states & _ALARMING, not is_held_back, -self.review - self.uncaptured, self.status.name)


def _counted(runs: Iterable[StartedRun]) -> int:
    return sum(min(run.unfinished, MAX_COUNTED) for run in runs)


_ALARMING: Final = frozenset({RowState.STOPPED, RowState.PROBLEM, RowState.EXPIRING})
#: States of a DLQ in which the service or a person has something to do.
_TO_DO: Final = _ALARMING | {
    RowState.BREAKER, RowState.UNCAPTURED, RowState.PAUSED, RowState.AWS, RowState.REVIEW, RowState.PROGRESS,
}  # fmt: skip
