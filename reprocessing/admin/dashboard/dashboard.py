"""The dashboard: each DLQ with its messages by state, failure reasons, runs and targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.dashboard import hourly_chart
from reprocessing.admin.dashboard.dlq_card import MAX_COUNTED, Count, DlqCard, TargetStatus
from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.admin.site import labels, visible_rows
from reprocessing.domain.lifecycle import OPEN_STATES, LetterState, ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.models import Breaker
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.models.safety import BreakerState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.dlqs.visible_dlqs import ALL_DLQS, VisibleDlqs
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.parking_lot.failure_groups import LargestGroup
from reprocessing.store.runs import open_runs
from reprocessing.store.runs.open_runs import OpenRun
from reprocessing.store.safety import breaker_status
from reprocessing.store.safety.breaker_status import BreakerStatus

_UNDER_WAY: Final = frozenset({LetterState.CAPTURED, *OPEN_STATES})
_BREAKERS: Final = {BreakerState.CLOSED: "closed", BreakerState.OPEN: "open", BreakerState.HALF_OPEN: "half open"}
_SOON: Final = 86_400.0  # seconds; a DLQ is marked if SQS deletes an unfinished message sooner
_WORST, _A_DLQ_S = 200, 3  # max failure groups that are read for all DLQs, and that are shown for one DLQ


def figures_view(request: HttpRequest) -> HttpResponse:
    """Return the part of the dashboard that an open page refreshes.

    Django's messages are shown on the next whole page, not here. The banner of a stop is returned only if the stop
    changed, so that a screen reader does not read the banner again.
    """
    told = figures_context(request.user)
    if not told["may_see_board"]:
        raise PermissionDenied
    part = {"is_part": True, "shown": request.GET.get("banner")}
    context = told | admin.site.each_context(request) | part
    return TemplateResponse(request, "reprocessing/admin/dashboard_figures.html", context)


def dashboard_context(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Return the template context of the dashboard: the DLQs, and the hourly chart."""
    told = figures_context(user)
    return told | hourly_chart.table_context(told["now"], visible_rows.of_user(user)) if told["may_see_board"] else told


def figures_context(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Return the template context with the DLQs; only `may_see_board`, False, if this person may not see DLQs."""
    if not (isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_deadletterqueue")):
        return {"may_see_board": False}
    seen = visible_rows.of_user(user)
    cards = _cards(seen, sees_groups=user.has_perm("reprocessing.view_failuregroup"))
    return {
        "may_see_board": True,
        "sees_all": seen.are_all,
        "may_stop": user.has_perms(("reprocessing.stop_sends", ALL_DLQS)),
        "now": lanes.database_now(),
        "cards": cards,
        "most": MAX_COUNTED,
        "waits_for_people": sum(card.waits_for_people for card in cards),
        "uncaptured": sum(card.uncaptured for card in cards),
        "under_way": sum(max(0, sum(count.n for count in card.under_way) - card.at_rest) for card in cards),
    }


def _cards(seen: VisibleDlqs, *, sees_groups: bool) -> list[DlqCard]:
    worst = failure_groups.largest_groups(_WORST, seen=seen) if sees_groups else []
    now = lanes.database_now()
    letters, expiries = counters.counts_by_state(), dlq_status.expiries()
    runs = [run for run in open_runs.open_runs(most=MAX_COUNTED + 1) if not _is_at_rest(run)]
    oldest: dict[int, datetime] = {}
    for found in (found for found in dlq_status.oldest_letters() if found.state in _UNDER_WAY):
        oldest[found.dlq_id] = min(found.first_sent_at, oldest.get(found.dlq_id, found.first_sent_at))
    visibility, lag = conf.current().receive_visibility, conf.current().count_lag.total_seconds()
    ways = pending_outcomes.of_targets(count_lag=lag, seen=seen)
    brakes = _brakes(seen, [way.target_id for way in ways])
    in_sight = dlq_status.visible_copies(visibility=visibility, count_lag=lag)
    cards = [
        _card(
            watch, [kind for kind in letters if kind.dlq_id == watch.id], expiries.get(watch.id), now,
            oldest=oldest.get(watch.id), runs=tuple(run for run in runs if run.dlq_id == watch.id),
            ways=tuple(_ways([way for way in ways if way.dlq_id == watch.id], brakes)),
            causes=[group for group in worst if group.dlq_id == watch.id], in_sight=in_sight.get(watch.id, 0),
        )
        for watch in dlq_status.dlq_statuses(copies=False, seen=seen)
    ]  # fmt: skip
    return sorted(cards, key=lambda card: card.urgency)


def _brakes(seen: VisibleDlqs, targets: list[int]) -> list[BreakerStatus]:
    """Return the circuit breakers of these targets, without those of rate classes that only other teams use."""
    found = breaker_status.breaker_statuses(targets)
    if seen.are_all:
        return found
    mine = set(seen.rows(Breaker.objects.filter(target__in=targets)).values_list("pk", flat=True))
    return [brake for brake in found if brake.breaker_id in mine]


def _card(  # noqa: PLR0913  # all are passed by name
    watch: DlqStatus, found: list[CountByState], expiry: datetime | None, now: datetime, *, oldest: datetime | None,
    runs: tuple[OpenRun, ...], ways: tuple[TargetStatus, ...], causes: list[LargestGroup], in_sight: int,
) -> DlqCard:  # fmt: skip
    left = expiry - now if expiry else None
    return DlqCard(
        watch=watch, address=reverse("admin:reprocessing_deadletterqueue_change", args=[watch.id]),
        depth=_depth(watch), asked_at=watch.depth_at, oldest=duration(now - oldest) if oldest else "",
        left=duration(left) if left is not None else "", soon=left is not None and left.total_seconds() < _SOON,
        under_way=tuple(_counts(watch, [kind for kind in found if kind.state in _UNDER_WAY])),
        parked=tuple(_parked(watch, _of_state(found, LetterState.PARKED))),
        finished=tuple(_counts(watch, [kind for kind in found if kind.state in _FINISHED])),
        runs=runs, ways=ways, causes=tuple(_causes(causes)), more_causes=max(0, len(causes) - _A_DLQ_S),
        in_sight=in_sight, unplanned=_unplanned(watch, found, runs),
    )  # fmt: skip


def _unplanned(watch: DlqStatus, found: Iterable[CountByState], runs: Iterable[OpenRun]) -> int:
    """Return the number of captured messages that no run sends; 0 in mode automatic, or if the DLQ has an open run."""
    if watch.mode == Mode.AUTOMATIC or any(run.state in {RunState.RUNNING, RunState.PAUSED} for run in runs):
        return 0
    return sum(kind.n for kind in _of_state(found, LetterState.CAPTURED))


_FINISHED: Final = frozenset(LetterState) - _UNDER_WAY - {LetterState.PARKED}


def _of_state(found: Iterable[CountByState], state: LetterState) -> list[CountByState]:
    return [kind for kind in found if kind.state == state]


def _depth(watch: DlqStatus) -> str:
    if watch.depth_at is None:
        return "not read yet"
    return f"{watch.depth_visible or 0:,} visible, {watch.depth_in_flight or 0:,} in flight"


def _counts(watch: DlqStatus, found: Iterable[CountByState]) -> Iterable[Count]:
    """Yield the number of messages in each state. Presumed delivered counts as a state of its own."""
    for state in LetterState:
        for presumed in (False, True):
            n = sum(kind.n for kind in found if (kind.state, kind.presumed) == (state, presumed))
            if n:
                told_apart = presumed or state == LetterState.DELIVERED
                asked = {"state__exact": state, **({"presumed__exact": int(presumed)} if told_apart else {})}
                name = "presumed delivered" if presumed else labels.state(state)
                yield Count(n, name, _letters(watch, "letter", asked))


def _parked(watch: DlqStatus, found: Iterable[CountByState]) -> Iterable[Count]:
    for kind in sorted(found, key=lambda kind: -kind.n):
        asked = {"reason__exact": kind.reason}
        yield Count(kind.n, ParkedReason(kind.reason).sentence, _letters(watch, "parkedletter", asked))


def _is_at_rest(run: OpenRun) -> bool:
    """Return whether this is a DLQ's standing run (the run of mode automatic) without unfinished messages."""
    return run.kind == RunKind.STANDING and run.state == RunState.RUNNING and not run.unfinished


def _causes(found: Sequence[LargestGroup]) -> Iterable[Count]:
    """Yield the largest failure groups. Groups with equal titles also show their ids and first failures."""
    titles = Counter(group.title for group in found)
    for group in found[:_A_DLQ_S]:
        apart = f" (group {group.id}, since {group.first_at:%Y-%m-%d %H:%M} UTC)" if titles[group.title] > 1 else ""
        address = reverse("admin:reprocessing_failuregroup_change", args=[group.id])
        yield Count(group.n, f"{visible(group.title)}{apart}", address)


def _letters(watch: DlqStatus, model: str, asked: dict[str, Any]) -> str:
    query = urlencode({"dlq__id__exact": watch.id, **asked})
    return f"{reverse(f'admin:reprocessing_{model}_changelist')}?{query}"


def _ways(found: Iterable[PendingOutcome], brakes: Iterable[BreakerStatus]) -> Iterable[TargetStatus]:
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
