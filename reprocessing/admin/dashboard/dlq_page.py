"""The page of one DLQ: messages by state, failure reasons, runs, targets and the hourly chart. It refreshes itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from reprocessing import conf
from reprocessing.admin.dashboard import dlq_row, hourly_chart, read_rows
from reprocessing.admin.dashboard.dlq_card import Count, DlqCard, TargetStatus
from reprocessing.admin.dashboard.dlq_row import SOON
from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.admin.site import labels, visible_rows
from reprocessing.domain.lifecycle import OPEN_STATES, LetterState, ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.models.safety import BreakerState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.parking_lot import failure_group_review
from reprocessing.store.parking_lot.failure_group_review import LargestGroup
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.runs import open_runs
from reprocessing.store.runs.open_runs import OpenRun
from reprocessing.store.safety.breaker_status import BreakerStatus

_UNDER_WAY: Final = frozenset({LetterState.CAPTURED, *OPEN_STATES})
_BREAKERS: Final = {BreakerState.CLOSED: "closed", BreakerState.OPEN: "open", BreakerState.HALF_OPEN: "half open"}
_WORST, _SHOWN = 200, 3  # max failure groups that are read from PostgreSQL, and max failure groups that are shown


@require_safe
def page(request: HttpRequest, dlq: int) -> HttpResponse:
    """Show the page of a DLQ. A request of htmx, from an open page, gets only the part that is refreshed.

    Raises:
        PermissionDenied: this person may not see DLQs.
        Http404: there is no such DLQ, or this person does not see it.
    """
    if not request.user.has_perm("reprocessing.view_deadletterqueue"):
        raise PermissionDenied
    seen = visible_rows.of(request)
    watch = next(iter(dlq_status.dlq_statuses(dlq, copies=False, seen=seen)), None) if dlq < 2**63 else None
    if watch is None:
        raise Http404
    card = _card(watch, seen, sees_groups=request.user.has_perm("reprocessing.view_failuregroup"))
    context: dict[str, Any] = {"card": card, "now": lanes.database_now(), "title": watch.name}
    context["most"] = dlq_row.MAX_COUNTED
    is_part = "HX-Request" in request.headers
    if not is_part:
        context |= {"chart": hourly_chart.chart(context["now"], dlq, seen=seen), **admin.site.each_context(request)}
    template = "dlq_figures.html" if is_part else "dlq.html"
    answer = TemplateResponse(request, f"reprocessing/admin/{template}", context)
    answer.headers["Vary"] = "HX-Request, Cookie"
    return answer


def _card(watch: DlqStatus, seen: VisibleDlqs, *, sees_groups: bool) -> DlqCard:
    now, settings = lanes.database_now(), conf.current()
    lag = settings.count_lag.total_seconds()
    found, expiry = counters.counts_by_state(watch.id), dlq_status.expiries(watch.id).get(watch.id)
    left = expiry - now if expiry else None
    oldest = min(
        (letter.first_sent_at for letter in dlq_status.oldest_letters(watch.id) if letter.state in _UNDER_WAY),
        default=None,
    )
    open_now = open_runs.open_runs(watch.id, most=dlq_row.MAX_COUNTED + 1)
    runs = tuple(run for run in open_now if not _is_idle(run))
    targets = pending_outcomes.of_targets(watch.id, count_lag=lag, seen=seen)
    breakers = read_rows.visible_breakers(seen, [way.target_id for way in targets])
    groups = failure_group_review.largest_groups(_WORST, seen=VisibleDlqs((watch.id,))) if sees_groups else []
    visible_copies = dlq_status.visible_copies(watch.id, visibility=settings.receive_visibility, count_lag=lag)
    return DlqCard(
        watch=watch, address=reverse("admin:reprocessing_deadletterqueue_change", args=[watch.id]),
        depth=_depth(watch), asked_at=watch.depth_at, oldest=duration(now - oldest) if oldest else "",
        left=duration(left) if left is not None else "", soon=left is not None and left.total_seconds() < SOON,
        under_way=tuple(_counts(watch, [kind for kind in found if kind.state in _UNDER_WAY])),
        parked=tuple(_parked(watch, _of_state(found, LetterState.PARKED))),
        finished=tuple(_counts(watch, [kind for kind in found if kind.state in _FINISHED])),
        runs=runs, targets=tuple(_target_statuses(targets, breakers)), groups=tuple(_largest_groups(groups)),
        more_groups=max(0, len(groups) - _SHOWN), visible_copies=visible_copies.get(watch.id, 0),
        unplanned=_unplanned(watch, found, runs),
    )  # fmt: skip


def _unplanned(watch: DlqStatus, found: Iterable[CountByState], runs: Iterable[OpenRun]) -> int:
    """Return how many captured or queued messages wait for the start of a run.

    The number is 0 if no start is needed: in mode automatic, or if a run of the DLQ is running, or is paused and has
    messages. Messages that an aborted run left in state queued wait for the next run.
    """
    has_run = any(run.state == RunState.RUNNING or (run.state == RunState.PAUSED and run.unfinished) for run in runs)
    if watch.mode == Mode.AUTOMATIC or has_run:
        return 0
    return sum(kind.n for kind in found if kind.state in {LetterState.CAPTURED, LetterState.WAITING})


_FINISHED: Final = frozenset(LetterState) - _UNDER_WAY - {LetterState.PARKED}


def _of_state(found: Iterable[CountByState], state: LetterState) -> list[CountByState]:
    return [kind for kind in found if kind.state == state]


def _depth(watch: DlqStatus) -> str:
    if watch.depth_at is None:
        return "not read yet"
    return f"{watch.depth_visible or 0:,} visible, {watch.depth_in_flight or 0:,} in flight"


def _counts(watch: DlqStatus, found: Iterable[CountByState]) -> Iterable[Count]:
    """Yield the number of messages in each state that has messages. "Presumed delivered" is counted as a state."""
    for state in LetterState:
        for presumed in (False, True):
            n = sum(kind.n for kind in found if (kind.state, kind.presumed) == (state, presumed))
            if n:
                is_delivery = presumed or state == LetterState.DELIVERED
                asked = {"state__exact": state, **({"presumed__exact": int(presumed)} if is_delivery else {})}
                yield Count(n, labels.state(state, presumed), _letters(watch, "letter", asked))


def _parked(watch: DlqStatus, found: Iterable[CountByState]) -> Iterable[Count]:
    for kind in sorted(found, key=lambda kind: -kind.n):
        asked = {"reason__exact": kind.reason}
        yield Count(kind.n, ParkedReason(kind.reason).label, _letters(watch, "parkedletter", asked))


def _is_idle(run: OpenRun) -> bool:
    """Return whether the run is a running automatic run without unfinished messages."""
    return run.kind == RunKind.AUTOMATIC and run.state == RunState.RUNNING and not run.unfinished


def _largest_groups(found: Sequence[LargestGroup]) -> Iterable[Count]:
    """Yield the number of messages of the three largest failure groups.

    Groups with equal titles are told apart by their ids and the times of their first failures.
    """
    titles = Counter(group.title for group in found)
    for group in found[:_SHOWN]:
        apart = f" (group {group.id}, since {group.first_at:%Y-%m-%d %H:%M} UTC)" if titles[group.title] > 1 else ""
        address = reverse("admin:reprocessing_failuregroup_change", args=[group.id])
        yield Count(group.n, f"{visible(group.title)}{apart}", address)


def _letters(watch: DlqStatus, model: str, asked: dict[str, Any]) -> str:
    query = urlencode({"dlq__id__exact": watch.id, **asked})
    return f"{reverse(f'admin:reprocessing_{model}_changelist')}?{query}"


def _target_statuses(found: Iterable[PendingOutcome], brakes: Iterable[BreakerStatus]) -> Iterable[TargetStatus]:
    of_target: dict[int, list[BreakerStatus]] = {}
    for brake in brakes:
        of_target.setdefault(brake.target_id, []).append(brake)
    for wait in found:
        for brake in of_target.get(wait.target_id, ()):
            yield TargetStatus(
                name=f"{resource_name(wait.target)}{f', {brake.rate_class}' if brake.rate_class else ''}",
                breaker=_BREAKERS[BreakerState(brake.state)],
                why=brake.why or brake.ramp_reason,
                allowed=_allowed(brake),
                unsettled=wait.unsettled,
                address=reverse("admin:reprocessing_breaker_change", args=[brake.breaker_id]),
                alarming=brake.state != BreakerState.CLOSED,
                waits_for=pending_outcomes.describe(wait),
            )


def _allowed(brake: BreakerStatus) -> str:
    if brake.state != BreakerState.CLOSED:
        return "canaries only"
    if brake.allowed is None:
        return "no rate limit"
    of = f" of {brake.rate:g}" if brake.rate is not None and brake.allowed < brake.rate else ""
    return f"{brake.allowed:g}{of} messages/s"
