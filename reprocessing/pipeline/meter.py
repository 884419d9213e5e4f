"""Ask the rates: how many of the heads that may go have a token, and until when they may spend it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reprocessing.domain.errors import RateIsUnknown
from reprocessing.models import Target
from reprocessing.models.brakes import Brake
from reprocessing.models.lanes import Standing
from reprocessing.rate import Granted, Rates

logger = logging.getLogger(__name__)

#: Seconds after which a lane asks again while Redis does not tell the rate.
RATE_IS_UNKNOWN_FOR = 1.0


@dataclass(slots=True)
class Metered:
    """The heads that may go, until when each target's may (monotonic; none: no limit), and how long the others wait."""

    heads: list[Standing] = field(default_factory=list)
    until: dict[int, float] = field(default_factory=dict)
    pause: float = 0.0


def heads(
    going: Sequence[Standing], *, targets: Mapping[int, Target], brakes: Mapping[int, Brake], rates: Rates
) -> Metered:
    """Those of the heads that have a token of their class, where that has a rate, and one of their target's."""
    metered = Metered()
    pauses: list[float] = []
    for target_id, some in _by_target(going):
        target = targets[target_id]
        left, until = _of_classes(some, brakes, rates, pauses)
        if left and target.rate is not None:
            ramp = min(brakes[one.breaker_id or 0].ramp for one in left)
            burst = None if target.burst is None else max(1.0, target.burst * ramp)
            left, until = _cut(left, until, target_id, target.rate * ramp, burst, rates, pauses)
        metered.heads += left
        if left and until is not None:
            metered.until[target_id] = until
    metered.pause = min(pauses, default=0.0)
    return metered


def _by_target(going: Iterable[Standing]) -> Iterable[tuple[int, list[Standing]]]:
    by_target: dict[int, list[Standing]] = {}
    for one in going:
        by_target.setdefault(one.target_id or 0, []).append(one)
    return by_target.items()


def _of_classes(
    some: Sequence[Standing], brakes: Mapping[int, Brake], rates: Rates, pauses: list[float]
) -> tuple[list[Standing], float | None]:
    """Those of one target's heads whose classes let them go; a class's rate holds over all targets."""
    left: list[Standing] = []
    until: float | None = None
    by_class: dict[int | None, list[Standing]] = {}
    for one in some:
        by_class.setdefault(one.rate_class_id, []).append(one)
    for rate_class, those in by_class.items():
        brake = brakes.get(those[0].breaker_id or 0)
        if rate_class is None or brake is None or brake.class_rate is None:
            left += those
        else:
            key = f"class:{rate_class}"
            found, until = _cut(those, until, key, brake.class_rate, brake.class_burst, rates, pauses)
            left += found
    return left, until


def _cut(  # noqa: PLR0913, PLR0917  # each by its place, twice above
    some: list[Standing], until: float | None, key: int | str, rate: float, burst: float | None, rates: Rates,
    pauses: list[float],
) -> tuple[list[Standing], float | None]:  # fmt: skip
    """As many of the heads as there are tokens, and until when the first of all tokens dies."""
    try:
        token: Granted = rates.take(key, len(some), rate, burst)
    except RateIsUnknown as error:
        logger.warning("%s", error)
        pauses.append(RATE_IS_UNKNOWN_FOR)
        return [], until
    if not token.count:
        pauses.append(token.retry_after)
        return [], until
    return some[: token.count], token.until if until is None else min(until, token.until)
