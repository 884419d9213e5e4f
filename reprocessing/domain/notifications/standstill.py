"""Say why a run stands still, in a sentence that quotes no message."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Standstill(StrEnum):
    """What a run waits for though nobody stopped it."""

    NOT_CONSUMED = "not_consumed"
    UNHEALTHY = "unhealthy"
    RATE_UNKNOWN = "rate_unknown"
    NOT_TAKEN = "not_taken"


_WHY: Final = {
    Standstill.NOT_CONSUMED: "Nobody seems to consume {target}: it has not been seen empty, so no outcome is known.",
    Standstill.UNHEALTHY: "The health checks of {target} do not say that it is healthy.",
    Standstill.RATE_UNKNOWN: "Redis does not answer, so the rate of {target} is not known.",
    Standstill.NOT_TAKEN: "No worker takes messages that may be sent to {target}.",
}


def why(standstill: Standstill, target: str) -> str:
    """Return the sentence; `target` is a name."""
    return _WHY[standstill].format(target=target)
