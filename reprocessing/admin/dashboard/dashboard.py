"""The board: what is dying, since when, why, what the service does about it, and what is left for people."""

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
from reprocessing.admin.dashboard.dlq_card import MOST, Card, Count, Way
from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.domain.lifecycle import OPEN, LetterState, ParkedReason
from reprocessing.domain.message.arn import name_of
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.models.safety import BreakerState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import Watch, Working
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import Kind
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import Expectation
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.parking_lot.failure_groups import Worst
from reprocessing.store.safety import breaker_status
from reprocessing.store.safety.breaker_status import Bearing

_STATES: Final = {
    LetterState.CAPTURED.value: "captured, not asked for",
    LetterState.WAITING.value: "waiting",
    LetterState.SENDING.value: "on the wire",
    LetterState.AWAITING.value: "sent, outcome open",
    LetterState.PARKED.value: "parked",
    LetterState.DELIVERED.value: "delivered",
    LetterState.DISCARDED.value: "discarded",
    LetterState.DUPLICATE.value: "duplicates",
}
_UNDER_WAY: Final = frozenset({LetterState.CAPTURED, *OPEN})
_BREAKERS: Final = {BreakerState.CLOSED: "closed", BreakerState.OPEN: "open", BreakerState.HALF_OPEN: "half open"}
_SOON: Final = 86_400.0  # seconds until the first letter is lost to SQS
_WORST, _A_DLQ_S = 200, 3  # causes that are looked at, and those of one dlq that are told


def figures(request: HttpRequest) -> HttpResponse:
    """The figures alone, for a page that is open: no message that another page waits to show goes with them.

    What stops everything goes with them where the page shows something else: a banner that is read aloud is not read
    aloud again at every look.
    """
    told = of(request.user)
    if not told["may_see_board"]:
        raise PermissionDenied
    part = {"is_part": True, "shown": request.GET.get("banner")}
    context = told | admin.site.each_context(request) | part
    return TemplateResponse(request, "reprocessing/admin/figures.html", context)


def whole(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """The board's figures, and what letters came to hour by hour."""
    told = of(user)
    return told | hourly_chart.of(told["now"]) if told["may_see_board"] else told


def of(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """The board's figures; of somebody who may not see dlqs, nothing but that."""
    if not (isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_deadletterqueue")):
        return {"may_see_board": False}
    cards = _cards(sees_groups=user.has_perm("reprocessing.view_lettergroup"))
    return {
        "may_see_board": True,
        "may_stop": user.has_perm("reprocessing.stop_sends"),
        "now": lanes.clock(),
        "cards": cards,
        "most": MOST,
        "waits_for_people": sum(one.waits_for_people for one in cards),
        "uncaptured": sum(one.uncaptured for one in cards),
        "under_way": sum(max(0, sum(each.n for each in one.under_way) - one.at_rest) for one in cards),
    }


def _cards(*, sees_groups: bool) -> list[Card]:
    worst = failure_groups.worst(_WORST) if sees_groups else []
    now = lanes.clock()
    letters, expiries = counters.kinds(), dlq_status.expiries()
    runs = [one for one in dlq_status.working(most=MOST + 1) if not _is_at_rest(one)]
    oldest: dict[int, datetime] = {}
    for one in (one for one in dlq_status.oldest() if one.state in _UNDER_WAY):
        oldest[one.dlq_id] = min(one.died_at, oldest.get(one.dlq_id, one.died_at))
    visibility, lag = conf.current().receive_visibility, conf.current().count_lag.total_seconds()
    ways = pending_outcomes.of_targets(count_lag=lag)
    brakes = breaker_status.bearings([one.target_id for one in ways])
    in_sight = dlq_status.in_sight(visibility=visibility, count_lag=lag)
    cards = [
        _card(
            watch, [one for one in letters if one.dlq_id == watch.id], expiries.get(watch.id), now,
            oldest=oldest.get(watch.id), runs=tuple(one for one in runs if one.dlq_id == watch.id),
            ways=tuple(_ways([one for one in ways if one.dlq_id == watch.id], brakes)),
            causes=tuple(_causes([one for one in worst if one.dlq_id == watch.id])),
            more_causes=max(0, sum(one.dlq_id == watch.id for one in worst) - _A_DLQ_S),
            in_sight=in_sight.get(watch.id, 0),
        )
        for watch in dlq_status.watches(copies=False)
    ]  # fmt: skip
    return sorted(cards, key=lambda one: one.urgency)


def _card(  # noqa: PLR0913  # each by its name
    watch: Watch, found: list[Kind], expiry: datetime | None, now: datetime, *, oldest: datetime | None,
    runs: tuple[Working, ...], ways: tuple[Way, ...], causes: tuple[Count, ...], more_causes: int, in_sight: int,
) -> Card:  # fmt: skip
    open_ones = [one for one in found if one.state in _UNDER_WAY]
    left = expiry - now if expiry else None
    return Card(
        watch=watch,
        address=reverse("admin:reprocessing_deadletterqueue_change", args=[watch.id]),
        depth=_depth(watch),
        asked_at=watch.depth_at,
        oldest=duration(now - oldest) if oldest else "",
        left=duration(left) if left is not None else "",
        soon=left is not None and left.total_seconds() < _SOON,
        under_way=tuple(_counts(watch, open_ones)),
        parked=tuple(_parked(watch, _of_state(found, LetterState.PARKED))),
        finished=tuple(_counts(watch, [one for one in found if one.state in _FINISHED])),
        runs=runs,
        ways=ways,
        causes=causes,
        more_causes=more_causes,
        in_sight=in_sight,
        unplanned=_unplanned(watch, found, runs),
    )


def _unplanned(watch: Watch, found: Iterable[Kind], runs: Iterable[Working]) -> int:
    """Captured letters of a dlq that nothing redrives by itself, where no run is at work that may take them up."""
    if watch.mode == Mode.AUTOMATIC or any(one.state in {RunState.RUNNING, RunState.PAUSED} for one in runs):
        return 0
    return sum(one.n for one in _of_state(list(found), LetterState.CAPTURED))


_FINISHED: Final = frozenset(_STATES) - {state.value for state in _UNDER_WAY} - {LetterState.PARKED.value}


def _of_state(found: Iterable[Kind], state: LetterState) -> list[Kind]:
    return [one for one in found if one.state == state]


def _depth(watch: Watch) -> str:
    if watch.depth_at is None:
        return "never asked"
    return f"{watch.depth_visible or 0:,} visible, {watch.depth_in_flight or 0:,} in flight"


def _counts(watch: Watch, found: Iterable[Kind]) -> Iterable[Count]:
    """By state, in the order of a letter's life; presumed ones apart from delivered ones."""
    for state, words in _STATES.items():
        for presumed in (False, True):
            n = sum(one.n for one in found if (one.state, one.presumed) == (state, presumed))
            if n:
                told_apart = presumed or state == LetterState.DELIVERED
                asked = {"state__exact": state, **({"presumed__exact": int(presumed)} if told_apart else {})}
                yield Count(n, "presumed delivered" if presumed else words, _letters(watch, "deadletter", asked))


def _parked(watch: Watch, found: Iterable[Kind]) -> Iterable[Count]:
    for one in sorted(found, key=lambda one: -one.n):
        asked = {"reason__exact": one.reason}
        yield Count(one.n, ParkedReason(one.reason).sentence, _letters(watch, "parkedletter", asked))


def _is_at_rest(run: Working) -> bool:
    """Beat's own run of a dlq, with nothing to do."""
    return run.kind == RunKind.STANDING and run.state == RunState.RUNNING and not run.unfinished


def _causes(found: Sequence[Worst]) -> Iterable[Count]:
    """The first of them; those that go by one title are told apart."""
    titles = Counter(one.title for one in found)
    for one in found[:_A_DLQ_S]:
        apart = f" (group {one.id}, since {one.first_at:%Y-%m-%d %H:%M} UTC)" if titles[one.title] > 1 else ""
        address = reverse("admin:reprocessing_lettergroup_change", args=[one.id])
        yield Count(one.n, f"{visible(one.title)}{apart}", address)


def _letters(watch: Watch, desk: str, asked: dict[str, Any]) -> str:
    query = urlencode({"dlq__id__exact": watch.id, **asked})
    return f"{reverse(f'admin:reprocessing_{desk}_changelist')}?{query}"


def _ways(found: Iterable[Expectation], brakes: Iterable[Bearing]) -> Iterable[Way]:
    of_target: dict[int, list[Bearing]] = {}
    for brake in brakes:
        of_target.setdefault(brake.target_id, []).append(brake)
    for one in found:
        for brake in of_target.get(one.target_id, ()):
            yield Way(
                name=f"{name_of(one.target)}{f', {brake.rate_class}' if brake.rate_class else ''}",
                breaker=_BREAKERS[BreakerState(brake.state)],
                why=brake.why or brake.ramp_why,
                allowed=_allowed(brake),
                unsettled=one.unsettled,
                address=reverse("admin:reprocessing_breaker_change", args=[brake.breaker_id]),
                alarming=brake.state != BreakerState.CLOSED,
                waits_for=pending_outcomes.in_words(one),
            )


def _allowed(brake: Bearing) -> str:
    if brake.state != BreakerState.CLOSED:
        return "canaries only"
    if brake.allowed is None:
        return "no limit"
    of = f" of {brake.rate:g}" if brake.rate is not None and brake.allowed < brake.rate else ""
    return f"{brake.allowed:g}{of} letters/s"
