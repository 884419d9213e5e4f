"""How far a run is: what its letters came to, where its lanes stand, and when it ends, at the least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.forecast import in_words
from reprocessing.models import BreakerState, Run, Wave
from reprocessing.models.run import RunState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import Lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import Expectation
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import EXACT, Left, Rough, Tally
from reprocessing.store.safety import breaker_status

#: Lanes that are looked at.
_LANES: Final = 20_000
#: Waves that are shown: a standing run has many.
_WAVES: Final = 12
#: Seconds over which a rate is measured, at the most.
_MEASURED: Final = 20.0
_TRIAL: Final = "not known: a breaker lets nothing but single letters go"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the bar: how many letters, what they are, and where it begins and how long it is in thousandths.

    `more`: "+" where there are more than are counted. `address`: of the list of just these letters.
    """

    kind: str
    what: str
    n: int
    more: str
    address: str
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Way:
    """What goes to one target: how much, how fast, in which order, and how long that takes at the least."""

    name: str
    letters: int
    pace: str
    order: str
    takes: str
    alarming: bool = False


@dataclass(frozen=True, slots=True)
class Base:
    """How many letters had been sent at a moment, from which the rate is measured."""

    sent: int
    at: datetime

    @classmethod
    def read(cls, text: str) -> Base | None:
        """What a page carried; None: nothing that a page of ours wrote."""
        sent, _, at = text.partition("@")
        try:
            moment = datetime.fromisoformat(at)
        except ValueError:
            return None
        return cls(int(sent), moment) if sent.isdecimal() and len(sent) < 12 and moment.tzinfo else None  # noqa: PLR2004

    def __str__(self) -> str:
        return f"{self.sent}@{self.at.isoformat()}"


def of(run: Run, now: datetime, base: Base | None) -> dict[str, Any]:
    """What changes of a run that was started."""
    tally = progress.at_a_glance(run.pk, selected=run.selected)
    count_lag = conf.current().count_lag.total_seconds()
    awaited = pending_outcomes.of_run(run.pk, run.dlq_id, count_lag=count_lag) if tally.awaiting else []
    known = pending_outcomes.known_in(awaited) if awaited else {}
    left = progress.left(run.pk, count_lag=count_lag, known_in=known) if 0 < tally.open <= EXACT else []
    sent = tally.letters - tally.waiting
    stands = dlq_status.lanes_of(run.pk, most=_LANES) if tally.open else []
    open_wave = Wave.objects.filter(run=run, settled_at=None).exclude(size=None).first()
    return {
        "tally": tally,
        "percent": tally.percent,
        "at_least": tally.is_least,
        "is_rough": isinstance(tally, Rough),
        "pieces": list(_pieces(run, tally)),
        "rate": _rate(sent, now, base),
        "base": base if base and now - base.at < timedelta(seconds=_MEASURED) else Base(sent, now),
        "ends": _ends(
            run, tally, left, unknown=_unknown(run, tally, stands, open_wave, known), known=_latest(known), now=now
        ),
        "ways": [_open_way(one) for one in left if one.letters],
        "stands": _stands(stands),
        "awaited": [] if tally.sending or _moves(stands) else _awaited(awaited),
        "not_all": sum(one.n for one in stands) == _LANES,
        "waves": list(Wave.objects.filter(run=run).order_by("-no")[:_WAVES]),
    }


def _capped(tally: Tally) -> frozenset[str]:
    return tally.capped if isinstance(tally, Rough) else frozenset()


def _stands(found: list[Lanes]) -> list[tuple[int, str]]:
    """How many lanes wait for what, the most first."""
    counts = Counter[str]()
    for one in found:
        counts[visible(dlq_status.in_words(one))] += one.n
    return [(n, why) for why, n in counts.most_common()]


def _moves(found: list[Lanes]) -> bool:
    """Whether some lane's head is on its way, or may go right now."""
    return any(one.phase == LanePhase.LEASED or (one.due and not one.is_barred) for one in found)


def _awaited(found: list[Expectation]) -> list[tuple[int, str]]:
    """What a run waits for that has letters under way and moves none: how many sent ones, to which target, for what."""
    told = ((one.unsettled, name_of(one.target), pending_outcomes.in_words(one)) for one in found)
    return [(n, visible(f"sent to {name} and waiting for {why}")) for n, name, why in told]


def _latest(known: Mapping[int, float | None]) -> float | None:
    """Seconds until all that is sent is known, at the earliest; None: nobody can say, or nothing is awaited."""
    found = [one for one in known.values() if one is not None]
    return max(found) if found and len(found) == len(known) else None


def _unknown(run: Run, tally: Tally, stands: list[Lanes], wave: Wave | None, known: Mapping[int, float | None]) -> str:
    """Why nobody can say when it ends: something lets no letter go, until somebody or something changes that."""
    barred = [one for one in stands if one.is_barred and one.phase == LanePhase.READY]
    if barred and tally.under_way:
        return max(barred, key=lambda one: one.n).why
    if wave and tally.waiting:
        seconds = _latest(known)
        when = "" if seconds is None else f", and that is known in {in_words(seconds)} at the earliest"
        return f"how much goes next depends on how the wave of {wave.size:,} goes{when}"
    if not tally.awaiting:
        return ""
    lag = conf.current().count_lag.total_seconds()
    waits = filter(pending_outcomes.is_endless, pending_outcomes.of_targets(run.dlq_id, count_lag=lag))
    endless = [f"{name_of(one.target)}: {pending_outcomes.in_words(one)}" for one in waits]
    return f"outcomes wait for {endless[0]}" if endless else ""


def _pieces(run: Run, tally: Tally) -> Iterator[Piece]:
    """The bar, from what is done to what is left."""
    on_lanes = tally.waiting - tally.captured - tally.sending
    certain = {} if isinstance(tally, Rough) else {"presumed__exact": 0}
    parts = (
        ("done", "delivered", "delivered", tally.delivered, {"state__exact": "delivered", **certain}),
        ("presumed", "presumed delivered", "", tally.presumed, {"state__exact": "delivered", "presumed__exact": 1}),
        ("closed", "closed as duplicates", "closed_as_duplicate", tally.closed_as_duplicate,
         {"state__exact": "duplicate"}),
        ("closed", "discarded", "discarded", tally.discarded, {"state__exact": "discarded"}),
        ("parked", "parked, for people", "parked", tally.parked, {"state__exact": "parked"}),
        ("sent", "sent, outcome not known yet", "awaiting", tally.awaiting, {"state__exact": "awaiting"}),
        ("sent", "on the wire", "", tally.sending, {"state__exact": "sending"}),
        ("left", "still to be sent", "waiting", on_lanes, {"state__exact": "waiting"}),
        ("left", "not on their lanes yet", "waiting", tally.captured, {"state__exact": "captured"}),
    )  # fmt: skip
    start = 0.0
    for kind, what, counted, n, asked in parts:
        length = 1000 * n / tally.letters if tally.letters else 0.0
        more = "+" if counted in _capped(tally) and n >= progress.CAP else ""
        yield Piece(kind, what, n, more, letters_of(run, asked), round(start, 2), round(length, 2))
        start += length


def letters_of(run: Run, asked: Mapping[str, object]) -> str:
    """The list of those letters of a run that are asked for; parked ones where they are decided about."""
    desk = "parkedletter" if asked.get("state__exact") == LetterState.PARKED else "deadletter"
    query = urlencode({"run__id__exact": run.pk, **asked})
    return f"{reverse(f'admin:reprocessing_{desk}_changelist')}?{query}"


def _rate(sent: int, now: datetime, base: Base | None) -> str:
    """Letters a second since the page began to measure; empty where it has not yet."""
    passed = (now - base.at).total_seconds() if base else 0.0
    if base is None or passed < 1 or passed > 3 * _MEASURED:
        return ""
    return f"{max(sent - base.sent, 0) / passed:,.1f}"


def _ends(  # noqa: PLR0913  # what is known of it
    run: Run, tally: Tally, left: list[Left], *, unknown: str, known: float | None, now: datetime
) -> str:
    """When it ends, at the least; or why nobody knows."""
    if run.state in {RunState.FINISHED, RunState.ABORTED} or not tally.open:
        return ""
    if run.state == RunState.PAUSED:
        return "ends not before somebody resumes it"
    if not tally.under_way:
        return "ends not before a person decides about what holds its lanes"
    if unknown:
        return f"ends not known: {visible(unknown)}"
    if not tally.waiting and known is not None:
        return f"all are sent, and what became of the last is known at {_at(now, known)} at the earliest"
    found = _ends_by_rate(run, tally) if tally.open > EXACT else _ends_by_lanes(left)
    return f"ends {found}" if found.startswith("not") else f"left, if nothing fails: {found}"


def _at(now: datetime, seconds: float) -> str:
    return f"{now + timedelta(seconds=seconds):%H:%M:%S} UTC, in {in_words(seconds)},"


def _ends_by_lanes(left: list[Left]) -> str:
    if any(one.breaker != BreakerState.CLOSED for one in left):
        return _TRIAL
    return in_words(max((one.seconds for one in left), default=0.0))


def _ends_by_rate(run: Run, tally: Tally) -> str:
    found = breaker_status.bearings(list(run.dlq.origins.values_list("target_id", flat=True)))
    if any(one.state != BreakerState.CLOSED for one in found):
        return _TRIAL
    allowed = [one.allowed for one in found if one.rate_class is None]
    if not allowed or None in allowed:
        return "not known: nothing limits the rate of its targets"
    return in_words(tally.waiting / max(sum(filter(None, allowed)), 0.001))


def pace(rate: float | None) -> str:
    """A rate in words."""
    return "no limit of rate" if rate is None else f"{rate:g} letters/s"


def _open_way(one: Left) -> Way:
    shut = one.breaker != BreakerState.CLOSED
    now = pace(one.rate) if one.rate is None else f"{one.rate * one.ramp:g} of {one.rate:g} letters/s now"
    state = one.breaker.replace("_", " ")
    return Way(
        name_of(one.name), one.letters, f"its breaker is {state}" if shut else now, "",
        in_words(one.seconds), alarming=shut,
    )  # fmt: skip
