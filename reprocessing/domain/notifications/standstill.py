"""Define the reasons why a run does not progress, each with a sentence for notifications."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Standstill(StrEnum):
    """Why a run does not progress although nobody paused or stopped it."""

    NOT_CONSUMED = "not_consumed"
    NOT_PROVED = "not_proved"
    UNHEALTHY = "unhealthy"
    RATE_UNKNOWN = "rate_unknown"
    NOT_TAKEN = "not_taken"
    BLOCKED = "blocked"


_WHY: Final = {
    Standstill.NOT_CONSUMED: "No outcomes: {target} was never found empty, so its consumer may be stopped.",
    Standstill.NOT_PROVED: (
        "No outcomes of messages to {target}: no capture of the DLQ could show that none came back. Another program "
        "may read the DLQ, or its mode is observe."
    ),
    Standstill.UNHEALTHY: "A health check of {target} failed, or its result is not known.",
    Standstill.RATE_UNKNOWN: "Redis does not answer, so the rate limit of {target} cannot be checked.",
    Standstill.NOT_TAKEN: "No worker sends the messages that are due for {target}.",
    Standstill.BLOCKED: "Earlier messages of its keys are in the run {target}, which has ended or is paused.",
}


def standstill_sentence(standstill: Standstill, target: str) -> str:
    """Return the reason in a sentence. `target`: the target's name; for `BLOCKED`, the name of the other run."""
    return _WHY[standstill].format(target=target)
