"""Return why a run does not progress, in a sentence that quotes no message."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Standstill(StrEnum):
    """Why a run that nobody stopped does not progress."""

    NOT_CONSUMED = "not_consumed"
    UNHEALTHY = "unhealthy"
    RATE_UNKNOWN = "rate_unknown"
    NOT_TAKEN = "not_taken"


_WHY: Final = {
    Standstill.NOT_CONSUMED: "No outcomes: {target} was never found empty, so its consumer may be stopped.",
    Standstill.UNHEALTHY: "A health check of {target} failed, or its result is not known.",
    Standstill.RATE_UNKNOWN: "Redis does not answer, so the rate limit of {target} cannot be checked.",
    Standstill.NOT_TAKEN: "No worker sends the messages that are due for {target}.",
}


def standstill_sentence(standstill: Standstill, target: str) -> str:
    """Return the sentence for a target of this name."""
    return _WHY[standstill].format(target=target)
