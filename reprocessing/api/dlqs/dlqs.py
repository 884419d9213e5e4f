"""List DLQs, show one DLQ, and show its status."""

from __future__ import annotations

from collections import Counter
from typing import Final

from django.http import HttpRequest
from ninja import Router

from reprocessing.api.dlqs.dlq_answers import (
    CaptureView,
    Depth,
    DlqDetail,
    DlqPage,
    DlqStatusView,
    DlqView,
    OpenRunView,
    SourceView,
    StopView,
    WaitingView,
)
from reprocessing.api.site import paging
from reprocessing.api.site.caller import caller_of
from reprocessing.api.site.document import reads
from reprocessing.api.site.paging import After, Limit
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState
from reprocessing.domain.search.search_fields import search_fields
from reprocessing.models import DeadLetterQueue
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering import lane_counts
from reprocessing.store.runs import open_runs
from reprocessing.store.safety import stops

router: Final = Router()
_TAG: Final = "DLQs"
_PRESUMED: Final = "presumed"
#: Unfinished messages of an open run are counted up to this number.
_MOST: Final = 50_000


@reads(router, "/dlqs", Scope.DLQS_READ, DlqPage, tag=_TAG)
def list_dlqs(request: HttpRequest, limit: Limit = paging.DEFAULT, after: After = "") -> DlqPage:
    """List DLQs.

    Lists the DLQs that the token sees, by name.
    """
    rows = caller_of(request).rows(DeadLetterQueue.objects)
    found, following = paging.page_by_name(rows, after=after, limit=limit, name=lambda dlq: dlq.name)
    return DlqPage(items=[_dlq(dlq) for dlq in found], next=following)


@reads(router, "/dlqs/{slug:dlq}", Scope.DLQS_READ, DlqDetail, tag=_TAG)
def get_dlq(request: HttpRequest, dlq: str) -> DlqDetail:
    """Show a DLQ and its source queues."""
    row = caller_of(request).row(DeadLetterQueue.objects, "DLQ", name=dlq)
    sources = row.sources.select_related("target").order_by("arn")
    return DlqDetail(
        **_dlq(row).model_dump(),
        sources=[SourceView(id=source.pk, arn=source.arn, target=source.target.arn) for source in sources],
        search_fields=[field.name for field in search_fields(tuple(row.search_fields))],
    )


@reads(router, "/dlqs/{slug:dlq}/status", Scope.DLQS_READ, DlqStatusView, tag=_TAG)
def get_dlq_status(request: HttpRequest, dlq: str) -> DlqStatusView:
    """Show the status of a DLQ.

    Returns the number of messages by state, stops, open runs, and why messages wait. Sends no request to SQS.
    """
    row = caller_of(request).row(DeadLetterQueue.objects, "DLQ", name=dlq)
    watch = dlq_status.dlq_statuses(row.pk, copies=False)[0]
    messages, parked = Counter[str](), Counter[str]()
    for kind in counters.counts_by_state(row.pk):
        messages[_PRESUMED if kind.presumed else kind.state] += kind.n
        parked[kind.reason] += kind.n if kind.state == LetterState.PARKED else 0
    oldest = [age.first_sent_at for age in dlq_status.oldest_letters(row.pk) if age.state not in FINISHED_STATES]
    waiting = Counter[str]()
    for lanes in lane_counts.lane_counts(row.pk):
        waiting[lane_counts.describe_lanes(lanes)] += lanes.n if lanes.phase != "leased" else 0
    return DlqStatusView(
        name=row.name, mode=row.mode, stopped=StopView.of(stops.stop_of(row.pk)),
        everything_stopped=StopView.of(stops.stop_of(None)),
        messages={state: messages[state] for state in (*(state.value for state in LetterState), _PRESUMED)},
        parked={reason: n for reason, n in sorted(parked.items()) if n},
        oldest_unfinished=min(oldest, default=None), first_expiry=dlq_status.expiries(row.pk).get(row.pk),
        runs=[
            OpenRunView(run=run.name, kind=run.kind, state=run.state, unfinished=run.unfinished, why=run.why or None)
            for run in open_runs.open_runs(row.pk, most=_MOST)
        ],
        waiting=[WaitingView(key_queues=n, why=why) for why, n in waiting.most_common() if n],
        capture=_capture(watch), native_redrive=watch.native or None,
        depth=Depth(visible=watch.depth_visible, in_flight=watch.depth_in_flight, at=watch.depth_at),
    )  # fmt: skip


def _capture(watch: DlqStatus) -> CaptureView:
    return CaptureView(
        last_clean=watch.drained_through, running_until=watch.captured_until, next_poll=watch.next_poll_at,
        last_error=watch.last_error or None,
    )  # fmt: skip


def _dlq(row: DeadLetterQueue) -> DlqView:
    stop = None
    if row.stopped_at is not None:
        stop = StopView(since=row.stopped_at, by=row.stopped_by, reason=row.stop_reason, after_restore=False)
    return DlqView(
        name=row.name, arn=row.arn, url=row.url, region=row.region, mode=row.mode, fifo=row.fifo,
        retention=row.retention, stopped=stop,
    )  # fmt: skip
