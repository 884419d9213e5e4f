"""Request bodies and JSON answers of the API about runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from reprocessing.api.site.fields import Answer, Change, ChangeAnswer, Count, Key, Moment, Name, Text, Yes
from reprocessing.api.site.paging import Next
from reprocessing.models import Run
from reprocessing.models.target import MAX_RATE, MIN_RATE
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.progress import RunCounts


class PlanRequest(Change):
    """The request to plan a run. If no field selects messages, the run has all messages of the DLQ."""

    dlq: Name
    run: Name | None = Field(None, description="id of the new run (default: generated)")
    limit: Count | None = Field(None, description="max messages; ordering keys with the oldest messages come first")
    source: Text | None = Field(None, description="name or ARN of the source queue")
    sent_after: Moment | None = Field(None, description="first sent at this time or later")
    sent_before: Moment | None = Field(None, description="first sent before this time")
    key: Key | None = Field(None, description="ordering key")
    message_ids: Annotated[list[Text], Field(max_length=1_000)] = Field([], description="ids of messages in the DLQ")
    waves: Yes | None = Field(None, description="1 message first, then 10, then 100, then all (default: as in the DLQ)")
    rate: Annotated[float, Field(ge=MIN_RATE, le=MAX_RATE)] | None = Field(
        None, description="max messages/s of this run to each target (default: the targets' rates)"
    )
    advance: Literal["accepted"] | None = Field(
        None,
        description="accepted: send a key's next message when the target accepted the message before, without waiting "
        "for the outcome. A message that fails again is then sent after later messages of its key (default: as set for "
        "the targets)",
    )
    capture: Yes = Field(
        default=True,
        description="let workers receive the DLQ's messages first; until this is done, the run has no messages",
    )


class RunChange(Change):
    """The request to start, pause or resume a run."""

    version: str | None = Field(
        None, max_length=100, description="`version` of the run when you read it: if the run changed, nothing is done"
    )


class AbortRun(RunChange):
    """The request to abort a run."""

    stop_dlq: Yes = Field(default=False, description="also stop the DLQ; the token needs the scope dlqs:stop")


class RunView(Answer):
    """A run: one redrive operation on a DLQ."""

    run: str
    dlq: str
    kind: str = Field(description="drain: takes selected messages; automatic: takes all new messages")
    state: str = Field(description="planned, running, paused, finished or aborted")
    version: str = Field(description="another value after each change of the run's state")
    selected: int | None = Field(description="number of messages of the plan; null: the DLQ is not captured yet")
    selection: dict[str, Any] = Field(description="conditions that select the messages; empty: all")
    waves: bool
    rate: float | None = Field(description="max messages/s of this run to each target; null: the targets' rates")
    waits_for_outcomes: bool = Field(
        description="when a key's next message is sent. true: as the targets' settings say; false: as soon as the "
        "target accepted the message before"
    )
    asked_by: str
    reason: str
    stopped_by: str | None = Field(description="who paused or aborted the run; `why` is the reason")
    why: str | None = Field(description="why the run was paused or aborted; null: it was not")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, run: Run) -> RunView:
        """Return the JSON answer for a run."""
        return cls(
            run=run.name, dlq=run.dlq.name, kind=run.kind, state=run.state, version=run_transitions.page_stamp(run),
            selected=run.selected, selection=run.selection, waves=run.waves, rate=run.rate,
            waits_for_outcomes=run.waits_for_outcomes, asked_by=run.asked_by, reason=run.reason,
            stopped_by=run.stopped_by or None, why=run.why or None, created_at=run.created_at,
            started_at=run.started_at, finished_at=run.finished_at,
        )  # fmt: skip


class RunPage(Answer):
    """A page of runs, the newest first."""

    items: list[RunView]
    next: Next


class ProgressView(Answer):
    """Number of messages of the run by state, and number of failed attempts.

    `presumed`: presumed delivered. `waiting`: queued. `awaiting`: awaiting outcome. `held`: those of the queued
    messages whose key queue waits for the decision of a person. `blocked`: those of the queued messages that are in
    their key queue behind messages of another run, which has ended or is paused.

    If an automatic run has more than 20,000 messages or attempts, at most 20,000 finished messages of each state are
    counted. `capped` then names the numbers that may be higher; `messages` and `percent` are lower limits, too.
    """

    messages: int
    delivered: int
    presumed: int
    duplicate: int
    parked: int
    discarded: int
    waiting: int
    sending: int
    awaiting: int
    held: int
    blocked: int
    failed_attempts: int | None = Field(description="null: not counted, since the automatic run is large")
    percent: int = Field(description="share of the run's messages that are finished, in percent")
    capped: list[str] = Field(description="names of the numbers above that may be higher; empty: all were counted")


class WaveView(Answer):
    """A wave of a run. `no`: its number. `size`: max messages; null: all messages that are left.

    `sent`: number of messages whose first attempt was in this wave. `failed`: how many of these failed. `settled_at`:
    when the wave ended; null: it has not ended.
    """

    no: int
    size: int | None
    sent: int | None
    failed: int | None
    settled_at: datetime | None


class RunTargetView(Answer):
    """A target to which messages of the run are still to be sent, their number, and the target's limits."""

    target: str
    messages: int
    longest_key_queue: int = Field(description="number of messages of the ordering key with the most messages")
    rate: float | None = Field(description="rate limit in messages/s; null: no limit")
    rate_now: float | None = Field(description="messages/s that the ramp-up allows now; null: no limit")
    circuit_breaker: str


class RunDetail(RunView):
    """A run with its progress."""

    progress: ProgressView
    wave_history: list[WaveView]
    targets: list[RunTargetView]
    seconds_left: float | None = Field(description="min seconds until the run ends; null: not running, or not known")
    failing: str | None = Field(description="most frequent answer of recent failed attempts; null: none")
    arrived_since: int | None = Field(description="messages captured since the start; the run does not send them")
    arrived_since_is_minimum: bool = Field(description="more messages may have been captured; they were not counted")

    @classmethod
    def read(cls, status: RunStatus) -> RunDetail:
        """Return the JSON answer for a run and its progress."""
        tally = status.tally
        return cls(
            **RunView.of(status.run).model_dump(),
            progress=ProgressView(
                messages=tally.letters, delivered=tally.delivered, presumed=tally.presumed,
                duplicate=tally.closed_as_duplicate, parked=tally.parked, discarded=tally.discarded,
                waiting=tally.waiting, sending=tally.sending, awaiting=tally.awaiting, held=tally.held,
                blocked=tally.blocked, percent=tally.percent,
                failed_attempts=tally.failed_attempts, capped=_capped(tally),
            ),
            wave_history=[
                WaveView(no=wave.no, size=wave.size, sent=wave.sent, failed=wave.failed, settled_at=wave.settled_at)
                for wave in status.waves
            ],
            targets=[
                RunTargetView(
                    target=left.name, messages=left.letters, longest_key_queue=left.longest, rate=left.rate,
                    rate_now=None if left.rate is None else left.rate * left.ramp, circuit_breaker=left.breaker,
                )
                for left in status.left
            ],
            seconds_left=status.seconds, failing=status.failing.answer if status.failing else None,
            arrived_since=status.arrived.n if status.arrived else None,
            arrived_since_is_minimum=status.arrived is not None and status.arrived.is_minimum,
        )  # fmt: skip


class RunAnswer(ChangeAnswer):
    """The result of the request to plan or change a run, or of its dry run."""

    run: RunView | None = Field(description="null: a dry run planned nothing")


def _capped(tally: RunCounts) -> list[str]:
    return sorted(name.replace("closed_as_duplicate", "duplicate") for name in tally.capped)
