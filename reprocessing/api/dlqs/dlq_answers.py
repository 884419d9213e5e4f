"""JSON answers of the API about DLQs, their status and their stops."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from reprocessing.api.site.fields import Answer, ChangeAnswer
from reprocessing.api.site.paging import Next
from reprocessing.store.safety import stops


class StopView(Answer):
    """A stop of one DLQ or of all DLQs: who ordered it, when and why. Until it ends, nothing is sent."""

    since: datetime
    by: str
    reason: str
    after_restore: bool = Field(
        description="whether PostgreSQL was restored from a backup; only the command after_restore ends this stop"
    )

    @classmethod
    def of(cls, stop: stops.Stop | None) -> StopView | None:
        """Return the JSON answer for a stop, or None if nothing is stopped."""
        if stop is None:
            return None
        return cls(since=stop.since, by=stop.by, reason=stop.reason, after_restore=stop.restored)


class SourceView(Answer):
    """A source queue of a DLQ, and the target to which its messages are redriven."""

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
    stopped: StopView | None = Field(description="the stop of this DLQ alone; null: not stopped")


class DlqDetail(DlqView):
    """A dead-letter queue with its source queues, and the names of its search fields."""

    sources: list[SourceView]
    search_fields: list[str] = Field(description="names of search fields, for `field` in a filter: order_id:4711")


class DlqPage(Answer):
    """A page of DLQs, by name."""

    items: list[DlqView]
    next: Next


class Depth(Answer):
    """SQS's approximate counts of messages in the DLQ at the time `at`. All are null if SQS was never asked."""

    visible: int | None
    in_flight: int | None
    at: datetime | None


class CaptureView(Answer):
    """The captures of a DLQ. `last_error`: the error of the last capture; null: it had none."""

    last_clean: datetime | None = Field(description="start of the last capture that emptied the DLQ")
    running_until: datetime | None = Field(description="latest end of the running capture; null: no capture runs")
    next_poll: datetime | None = Field(description="when beat polls the DLQ next; null: not scheduled")
    last_error: str | None


class OpenRunView(Answer):
    """A planned, running or paused run.

    `unfinished`: number of unfinished messages; counting ends at 50,000. `why`: why the run is paused.
    """

    run: str
    kind: str
    state: str
    unfinished: int
    why: str | None


class WaitingView(Answer):
    """A reason why key queues wait, and the number of key queues that wait for this reason."""

    key_queues: int
    why: str


class DlqStatusView(Answer):
    """The status of a DLQ: stops, numbers of messages, captures, open runs, and why messages wait."""

    name: str
    mode: str
    stopped: StopView | None = Field(description="the stop of this DLQ alone; null: not stopped")
    everything_stopped: StopView | None = Field(description="the stop of all DLQs; null: not stopped")
    depth: Depth
    messages: dict[str, int] = Field(description="number of messages by state; presumed: presumed delivered")
    parked: dict[str, int] = Field(description="number of parked messages by reason")
    oldest_unfinished: datetime | None = Field(
        description="when the oldest unfinished message was first sent; null: none is unfinished"
    )
    first_expiry: datetime | None = Field(description="when SQS deletes the first unfinished message from the DLQ")
    capture: CaptureView
    native_redrive: str | None = Field(description="since when AWS itself redrives this DLQ; null: it does not")
    runs: list[OpenRunView]
    waiting: list[WaitingView]


class StopAnswer(ChangeAnswer):
    """The result of a request to stop or resume a DLQ, or all DLQs."""

    stopped: StopView | None = Field(description="the stop after this request; null: not stopped")
