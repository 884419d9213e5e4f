"""The board: what is dying, since when, why, what the service does about it, and what is left for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
from reprocessing.admin.reading import duration
from reprocessing.domain.arn import name_of
from reprocessing.domain.lifecycle import OPEN, LetterState, ParkedReason
from reprocessing.models import bearings, expectation, lanes, standing
from reprocessing.models.bearings import Bearing
from reprocessing.models.breaker import BreakerState
from reprocessing.models.expectation import Expectation
from reprocessing.models.run import RunState
from reprocessing.models.standing import Letters, Watch, Working

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


@dataclass(frozen=True, slots=True)
class Count:
    """A number, what it counts, and where the letters behind it are."""

    n: int
    what: str
    address: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where a dlq's letters go back to, how fast they may, and what holds them; `alarming`: nothing goes."""

    name: str
    breaker: str
    why: str
    allowed: str
    unsettled: int
    address: str
    alarming: bool


@dataclass(frozen=True, slots=True)
class Card:
    """One dlq.

    Attributes:
        depth: what SQS said it holds, in words.
        left: until SQS drops the first copy of an unfinished letter; empty: it holds none. `soon`: within a day.
        under_way, parked: letters that are not finished; parked ones by reason.
        finished: what became of the others.
    """

    watch: Watch
    address: str
    depth: str
    asked_at: datetime | None
    oldest: str
    left: str
    soon: bool
    under_way: tuple[Count, ...]
    parked: tuple[Count, ...]
    finished: tuple[Count, ...]
    runs: tuple[Working, ...]
    ways: tuple[Way, ...]

    @property
    def waits_for_people(self) -> int:
        """Letters that are parked."""
        return sum(one.n for one in self.parked)

    @property
    def is_alarming(self) -> bool:
        """Nothing of it moves, or letters are about to be lost to SQS."""
        return bool(self.watch.stopped_at or self.watch.trouble or self.soon)

    @property
    def is_wary(self) -> bool:
        """Something of it is held back."""
        return any(one.alarming for one in self.ways) or any(run.state == RunState.PAUSED for run in self.runs)

    @property
    def urgency(self) -> tuple[bool, bool, int, str]:
        """What people look at first sorts first."""
        return (not self.is_alarming, not self.is_wary, -self.waits_for_people, self.watch.name)


def figures(request: HttpRequest) -> HttpResponse:
    """The figures alone, for a page that is open: no message that another page waits to show goes with them."""
    told = of(request.user)
    if not told["may_see_board"]:
        raise PermissionDenied
    context = told | admin.site.each_context(request)
    return TemplateResponse(request, "reprocessing/admin/figures.html", context)


def of(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """The board's figures; of somebody who may not see dlqs, nothing but that."""
    if not (isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_deadletterqueue")):
        return {"may_see_board": False}
    cards = _cards()
    return {
        "may_see_board": True,
        "may_stop": user.has_perm("reprocessing.stop_sends"),
        "now": lanes.clock(),
        "cards": cards,
        "waits_for_people": sum(one.waits_for_people for one in cards),
        "under_way": sum(each.n for one in cards for each in one.under_way),
    }


def _cards() -> list[Card]:
    now = lanes.clock()
    letters, runs, expiries = standing.letters(), standing.working(), standing.expiries()
    ways = expectation.of_targets(count_lag=conf.current().count_lag.total_seconds())
    brakes = bearings.bearings([one.target_id for one in ways])
    cards = [
        _card(
            watch, [one for one in letters if one.dlq_id == watch.id], expiries.get(watch.id), now,
            runs=tuple(one for one in runs if one.dlq_id == watch.id),
            ways=tuple(_ways([one for one in ways if one.dlq_id == watch.id], brakes)),
        )
        for watch in standing.watches()
    ]  # fmt: skip
    return sorted(cards, key=lambda one: one.urgency)


def _card(  # noqa: PLR0913  # each by its name
    watch: Watch, found: list[Letters], expiry: datetime | None, now: datetime, *, runs: tuple[Working, ...],
    ways: tuple[Way, ...],
) -> Card:  # fmt: skip
    open_ones = [one for one in found if one.state in _UNDER_WAY]
    oldest = min((one.died_at for one in [*open_ones, *_of_state(found, LetterState.PARKED)]), default=None)
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
    )


_FINISHED: Final = frozenset(_STATES) - {state.value for state in _UNDER_WAY} - {LetterState.PARKED.value}


def _of_state(found: Iterable[Letters], state: LetterState) -> list[Letters]:
    return [one for one in found if one.state == state]


def _depth(watch: Watch) -> str:
    if watch.depth_at is None:
        return "never asked"
    return f"{watch.depth_visible or 0:,} visible, {watch.depth_in_flight or 0:,} in flight"


def _counts(watch: Watch, found: Iterable[Letters]) -> Iterable[Count]:
    """By state, in the order of a letter's life; presumed ones apart from delivered ones."""
    for state, words in _STATES.items():
        for presumed in (False, True):
            n = sum(one.n for one in found if (one.state, one.presumed) == (state, presumed))
            if n:
                asked = {"state__exact": state, **({"presumed__exact": 1} if presumed else {})}
                yield Count(n, "presumed delivered" if presumed else words, _letters(watch, "deadletter", asked))


def _parked(watch: Watch, found: Iterable[Letters]) -> Iterable[Count]:
    for one in sorted(found, key=lambda one: -one.n):
        asked = {"reason__exact": one.reason}
        yield Count(one.n, ParkedReason(one.reason).sentence, _letters(watch, "parkedletter", asked))


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
            )


def _allowed(brake: Bearing) -> str:
    if brake.state != BreakerState.CLOSED:
        return "canaries only"
    if brake.allowed is None:
        return "no limit"
    of = f" of {brake.rate:g}" if brake.rate is not None and brake.allowed < brake.rate else ""
    return f"{brake.allowed:g}{of} letters/s"
