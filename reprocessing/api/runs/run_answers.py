"""Bodies and answers of runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from reprocessing.api.site.fields import Answer, Change, ChangeAnswer, Count, Moment, Name, Text, Yes
from reprocessing.models import Run
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.runs import run_transitions


class PlanRequest(Change):
    """The plan of a run. Without a selection, it has all messages of the DLQ."""

    dlq: Name
    run: Name | None = Field(None, description="id of the new run (default: made up)")
    limit: Count | None = Field(None, description="max messages; keys with the oldest messages are taken first")
    source: Text | None = Field(None, description="name or ARN of the source queue")
    died_after: Moment | None = Field(None, description="failed at this time or later")
    died_before: Moment | None = Field(None, description="failed before this time")
    key: Text | None = Field(None, description="ordering key")
    message_ids: Annotated[list[Text], Field(max_length=1_000)] = Field([], description="ids of messages in the DLQ")
    waves: Yes | None = Field(None, description="1 message first, then 10, then 100, then all (default: the DLQ's)")
    capture: Yes = Field(
        default=True, description="let workers receive messages first; until then, the run has no messages"
    )


class RunChange(Change):
    """A change of a run's state."""

    version: str | None = Field(
        None, max_length=100, description="`version` of the run as you saw it: nothing is done if it changed since"
    )


class AbortRun(RunChange):
    """The end of a run."""

    stop_dlq: Yes = Field(default=False, description="also stop the DLQ; takes the scope dlqs:stop")


class RunView(Answer):
    """A run."""

    run: str
    dlq: str
    kind: str = Field(description="drain: a selection of messages; standing: of a DLQ in mode automatic")
    state: str = Field(description="planned, running, paused, finished or aborted")
    version: str = Field(description="changes with every change of the state")
    selected: int | None = Field(description="number of messages of the plan; null: the DLQ is captured first")
    selection: dict[str, Any]
    waves: bool
    asked_by: str
    reason: str
    stopped_by: str | None = Field(description="who paused or aborted it")
    why: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, run: Run) -> RunView:
        """Return a run."""
        return cls(
            run=run.name, dlq=run.dlq.name, kind=run.kind, state=run.state, version=run_transitions.page_stamp(run),
            selected=run.selected, selection=run.selection, waves=run.waves, asked_by=run.asked_by, reason=run.reason,
            stopped_by=run.stopped_by or None, why=run.why or None, created_at=run.created_at,
            started_at=run.started_at, finished_at=run.finished_at,
        )  # fmt: skip


class RunPage(Answer):
    """A page of runs, the newest first."""

    items: list[RunView]
    next: str | None


class ProgressView(Answer):
    """Number of messages of the run by state. `held`: of the waiting, those behind a message that needs a person."""

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
    failed_attempts: int
    percent: int = Field(description="share of the messages that are finished")


class WaveView(Answer):
    """A wave. `size`: null: all remaining messages; `settled_at`: null: it is in progress."""

    no: int
    size: int | None
    sent: int | None
    failed: int | None
    settled_at: datetime | None


class RunTargetView(Answer):
    """Messages of the run that are still to be sent to a target."""

    target: str
    messages: int
    longest_key_queue: int
    rate: float | None = Field(description="messages a second; null: no limit")
    rate_now: float | None
    circuit_breaker: str


class RunDetail(RunView):
    """A run with its progress."""

    progress: ProgressView
    wave_history: list[WaveView]
    targets: list[RunTargetView]
    seconds_left: float | None = Field(description="at least; null: not running, or not known")
    failing: str | None = Field(description="the most frequent answer of recent failed attempts")
    arrived_since: int | None = Field(description="messages captured since the start, which the run does not send")

    @classmethod
    def read(cls, seen: RunStatus) -> RunDetail:
        """Return a run and its status."""
        tally = seen.tally
        return cls(
            **RunView.of(seen.run).model_dump(),
            progress=ProgressView(
                messages=tally.letters, delivered=tally.delivered, presumed=tally.presumed,
                duplicate=tally.closed_as_duplicate, parked=tally.parked, discarded=tally.discarded,
                waiting=tally.waiting, sending=tally.sending, awaiting=tally.awaiting, held=tally.held,
                failed_attempts=tally.failed_attempts, percent=tally.percent,
            ),
            wave_history=[
                WaveView(no=wave.no, size=wave.size, sent=wave.touched, failed=wave.failed, settled_at=wave.settled_at)
                for wave in seen.waves
            ],
            targets=[
                RunTargetView(
                    target=left.name, messages=left.letters, longest_key_queue=left.longest, rate=left.rate,
                    rate_now=None if left.rate is None else left.rate * left.ramp, circuit_breaker=left.breaker,
                )
                for left in seen.left
            ],
            seconds_left=seen.seconds, failing=seen.failing.answer if seen.failing else None,
            arrived_since=seen.arrived,
        )  # fmt: skip


class RunAnswer(ChangeAnswer):
    """What became of the request for a run."""

    run: RunView | None = Field(description="null: a dry run planned nothing")
