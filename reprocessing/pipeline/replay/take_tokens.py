"""Ask the rates: how many of the heads that may go have a token, and until when they may spend it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reprocessing.domain.errors import RateIsUnknown
from reprocessing.gateways.redis.send_rate import Granted, Rates
from reprocessing.models import Target
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.safety.send_limits import Brake

logger = logging.getLogger(__name__)

#: Seconds after which a lane asks again while Redis does not tell the rate.
RATE_IS_UNKNOWN_FOR = 1.0


@dataclass(slots=True)
class Metered:
    """The heads that may go, until when each target's may (monotonic; none: no limit), and how long the others wait.

    Where they wait because Redis told no rate, it is `unknown`.
    """

    heads: list[Standing] = field(default_factory=list)
    until: dict[int, float] = field(default_factory=dict)
    pause: float = 0.0
    unknown: bool = False


@dataclass(slots=True)
class _Pauses:
    """Seconds for which one thing or another waits, and whether Redis told nothing of one."""

    seconds: list[float] = field(default_factory=list)
    unknown: bool = False

    def await_redis(self) -> None:
        self.seconds.append(RATE_IS_UNKNOWN_FOR)
        self.unknown = True


def heads(
    going: Sequence[Standing], *, targets: Mapping[int, Target], brakes: Mapping[int, Brake], rates: Rates
) -> Metered:
    """Those of the heads that have a token of their class, where that has a rate, and one of their target's.

    Of a class no more tokens are taken than the target will match: what dies here is lacking elsewhere.
    """
    metered = Metered()
    pauses = _Pauses()
    for target_id, some in _by_target(going):
        pace = _pace(targets[target_id], some, brakes)
        room = len(some) if pace is None or not _in_classes(some, brakes) else _there(pace, rates, pauses)
        left, until = _of_classes(some, room, brakes, rates, pauses)
        if left and pace is not None:
            left, until = _cut(left, until, pace, rates, pauses)
        metered.heads += left
        if left and until is not None:
            metered.until[target_id] = until
    metered.pause, metered.unknown = min(pauses.seconds, default=0.0), pauses.unknown
    return metered


@dataclass(frozen=True, slots=True)
class _Pace:
    """Whose rate it is, letters a second, and letters at once (None: one second of it)."""

    key: int | str
    rate: float
    burst: float | None


def _pace(target: Target, some: Sequence[Standing], brakes: Mapping[int, Brake]) -> _Pace | None:
    """The rate that a target's ramps allow, the least of them; None: no limit."""
    if target.rate is None:
        return None
    ramp = min(brakes[one.breaker_id or 0].ramp for one in some)
    return _Pace(target.pk, target.rate * ramp, None if target.burst is None else max(1.0, target.burst * ramp))


def _in_classes(some: Sequence[Standing], brakes: Mapping[int, Brake]) -> bool:
    return any(brakes[one.breaker_id or 0].class_rate is not None for one in some)


def _there(pace: _Pace, rates: Rates, pauses: _Pauses) -> int:
    """How many tokens there are; none is taken."""
    try:
        found = rates.peek(pace.key, pace.rate, pace.burst)
    except RateIsUnknown as error:
        logger.warning("%s", error)
        pauses.await_redis()
        return 0
    if not found.count:
        pauses.seconds.append(found.retry_after)
    return found.count


def _by_target(going: Iterable[Standing]) -> Iterable[tuple[int, list[Standing]]]:
    by_target: dict[int, list[Standing]] = {}
    for one in going:
        by_target.setdefault(one.target_id or 0, []).append(one)
    return by_target.items()


def _of_classes(
    some: Sequence[Standing], room: int, brakes: Mapping[int, Brake], rates: Rates, pauses: _Pauses
) -> tuple[list[Standing], float | None]:
    """Those of one target's heads whose classes let them go, `room` at most; a class's rate holds over all targets."""
    left: list[Standing] = []
    until: float | None = None
    by_class: dict[int | None, list[Standing]] = {}
    for one in some:
        by_class.setdefault(one.rate_class_id, []).append(one)
    for rate_class, every in by_class.items():
        brake = brakes[every[0].breaker_id or 0]
        those = every[: room - len(left)]
        if those and rate_class is not None and brake.class_rate is not None:
            pace = _Pace(f"class:{rate_class}", brake.class_rate, brake.class_burst)
            those, until = _cut(those, until, pace, rates, pauses)
        left += those
    return left, until


def _cut(
    some: list[Standing], until: float | None, pace: _Pace, rates: Rates, pauses: _Pauses
) -> tuple[list[Standing], float | None]:
    """As many of the heads as there are tokens, and until when the first of all tokens dies."""
    try:
        token: Granted = rates.take(pace.key, len(some), pace.rate, pace.burst)
    except RateIsUnknown as error:
        logger.warning("%s", error)
        pauses.await_redis()
        return [], until
    if not token.count:
        pauses.seconds.append(token.retry_after)
        return [], until
    return some[: token.count], token.until if until is None else min(until, token.until)
