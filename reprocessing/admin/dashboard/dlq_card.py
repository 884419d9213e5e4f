"""The values that the page of one DLQ shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.admin.dashboard import dlq_row
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.models.run import RunState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.runs.open_runs import OpenRun


@dataclass(frozen=True, slots=True)
class Count:
    """A number of messages, with its label, and the URL of the list of these messages."""

    n: int
    what: str
    address: str


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target of a DLQ, with the state of a circuit breaker. A target also has a circuit breaker for each rate class.

    Attributes:
        breaker: the circuit breaker's state, such as "half open".
        address: URL of the circuit breaker's page.
        why: why the circuit breaker has its state.
        allowed: the rate that is allowed now, in words.
        unsettled: number of sent messages whose outcome is not known.
        alarming: whether the circuit breaker is not closed.
        waits_for: what the unknown outcomes depend on; empty: all outcomes are known.
    """

    name: str
    breaker: str
    why: str
    allowed: str
    unsettled: int
    address: str
    alarming: bool
    waits_for: str


@dataclass(frozen=True, slots=True)
class DlqCard:
    """The values that the page of a DLQ shows.

    Attributes:
        address: URL of the page with the DLQ's settings.
        depth: the number of messages in SQS, in words; `asked_at`: when SQS was asked (None: not yet).
        oldest: age of the oldest unfinished message, in words.
        left: time until SQS deletes the first of its copies of unfinished messages; empty: SQS has no copy.
        soon: whether `left` is less than a day.
        under_way: number of messages in each state that is not final.
        parked: number of parked messages for each reason.
        finished: number of messages in each final state.
        runs: the planned, running and paused runs, but without an automatic run that has nothing to do.
        groups: the open failure groups with the most messages.
        more_groups: number of open failure groups that are not in `groups`.
        visible_copies: number of captured messages whose copies in SQS are visible again.
        unplanned: number of captured or queued messages that are not sent until a person starts a run.
    """

    watch: DlqStatus
    address: str
    depth: str
    asked_at: datetime | None
    oldest: str
    left: str
    soon: bool
    under_way: tuple[Count, ...]
    parked: tuple[Count, ...]
    finished: tuple[Count, ...]
    runs: tuple[OpenRun, ...]
    targets: tuple[TargetStatus, ...]
    groups: tuple[Count, ...]
    more_groups: int = 0
    visible_copies: int = 0
    unplanned: int = 0

    @property
    def paused(self) -> tuple[OpenRun, ...]:
        """Return the paused runs that have messages."""
        return tuple(run for run in self.runs if run.state == RunState.PAUSED and run.unfinished)

    @property
    def waiting_for_run(self) -> int:
        """Return how many messages wait until a person starts or resumes a run, at most 10,000 of each run."""
        return self.unplanned + sum(min(run.unfinished, dlq_row.MAX_COUNTED) for run in self.paused)

    @property
    def is_lower_bound(self) -> bool:
        """Return whether `waits_for_people` is only a minimum, because a paused run has more than 10,000 messages."""
        return any(run.unfinished > dlq_row.MAX_COUNTED for run in self.paused)

    @property
    def waits_for_people(self) -> int:
        """Return how many messages need a person: parked, or waiting until a person starts or resumes a run."""
        return sum(count.n for count in self.parked) + self.waiting_for_run

    @property
    def uncaptured(self) -> int:
        """Return how many messages in SQS are not captured, in a DLQ that is not captured automatically."""
        return dlq_status.uncaptured(self.watch, self.visible_copies)

    @property
    def deleted_after(self) -> str:
        """Return the retention period of the DLQ, after which SQS deletes a message, as text."""
        return f"{duration_in_words(self.watch.retention)} after it {'failed' if self.watch.fifo else 'was first sent'}"

    @property
    def is_alarming(self) -> bool:
        """Return whether the DLQ is stopped or has a problem, or SQS soon deletes an unfinished message."""
        return bool(self.watch.stopped_at or self.watch.last_error or self.soon)

    @property
    def is_wary(self) -> bool:
        """Return whether the card gets the colour of a warning: messages wait, need a person, or are not captured."""
        is_held_back = any(way.alarming for way in self.targets) or any(
            run.state == RunState.PAUSED for run in self.runs
        )
        return is_held_back or self.waits_for_people > 0 or self.uncaptured > 0
