"""DLQs and their status, as the API answers them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from reprocessing.api.site.fields import Answer, ChangeAnswer
from reprocessing.store.safety import stops


class StopView(Answer):
    """A stop of sends."""

    since: datetime
    by: str
    reason: str
    after_restore: bool = Field(description="the hold after a restore, which only the command after_restore ends")

    @classmethod
    def of(cls, stop: stops.Stop | None) -> StopView | None:
        """Return a stop; None: nothing is stopped."""
        if stop is None:
            return None
        return cls(since=stop.since, by=stop.by, reason=stop.reason, after_restore=stop.restored)


class SourceView(Answer):
    """A source queue, and where its messages are redriven to."""

    id: int
    arn: str
    target: str = Field(description="ARN of the target")


class DlqView(Answer):
    """A dead-letter queue."""

    name: str
    arn: str
    url: str
    region: str
    mode: str = Field(description="observe, manual or automatic")
    fifo: bool
    retention: int = Field(description="seconds for which SQS keeps a message")
    stopped: StopView | None


class DlqDetail(DlqView):
    """A dead-letter queue with its source queues."""

    sources: list[SourceView]


class DlqPage(Answer):
    """A page of DLQs, by name."""

    items: list[DlqView]
    next: str | None


class Depth(Answer):
    """SQS's own counts. `at`: when SQS was asked; null: never."""

    visible: int | None
    in_flight: int | None
    at: datetime | None


class CaptureView(Answer):
    """Captures of a DLQ. `trouble`: why the last one failed."""

    last_clean: datetime | None = Field(description="start of the last capture that emptied the DLQ")
    running_until: datetime | None = Field(description="a capture runs; its lease ends then")
    next_poll: datetime | None
    trouble: str | None


class OpenRunView(Answer):
    """A run that has not ended."""

    run: str
    kind: str
    state: str
    unfinished: int
    why: str | None


class WaitingView(Answer):
    """Key queues that wait, and why."""

    key_queues: int
    why: str


class DlqStatusView(Answer):
    """The status of a DLQ."""

    name: str
    mode: str
    stopped: StopView | None = Field(description="the stop of this DLQ alone")
    everything_stopped: StopView | None = Field(description="the stop of all DLQs")
    depth: Depth
    messages: dict[str, int] = Field(description="number of messages by state; presumed: presumed delivered")
    parked: dict[str, int] = Field(description="number of parked messages by reason")
    oldest_unfinished: datetime | None
    first_expiry: datetime | None = Field(description="when SQS deletes the first copy of an unfinished message")
    capture: CaptureView
    native_redrive: str | None = Field(description="AWS's own redrive moves the messages of the DLQ")
    runs: list[OpenRunView]
    waiting: list[WaitingView]


class StopAnswer(ChangeAnswer):
    """What became of a stop."""

    stopped: StopView | None = Field(description="the stop after this request; null: not stopped")
