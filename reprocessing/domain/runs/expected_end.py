"""Estimate when a run ends, and say which rates the estimate is based on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reprocessing.domain.runs.forecast import duration_in_words, rate_in_words, time_in_words

#: The estimate is based on the measured rate if that is below this share of the allowed rate.
_MUCH_SLOWER: Final = 0.8


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """When a run ends: in `seconds` from now. `basis`: words for people that say what the estimate is based on."""

    seconds: float
    basis: str

    def sentence(self, now: datetime) -> str:
        """Return the time, the duration and the basis in words."""
        at = now + timedelta(seconds=self.seconds)
        return f"ends at {time_in_words(at, now)}, in {duration_in_words(self.seconds)}, {self.basis}"


def expected_end(
    waiting: int, *, allowed: float | None, measured: float, forecast: float | None
) -> ExpectedEnd | None:  # fmt: skip
    """Return when a run ends; None: not known, because no rate and no forecast is known.

    Args:
        waiting: messages that are still to be sent.
        allowed: messages a second that the rate limits allow now; None: no limit.
        measured: messages a second that were sent in the last minute; 0: not measured.
        forecast: the least seconds that the run takes, with its rate limits, ramp-up and order per key; None: not
            computed.
    """
    if measured and (allowed is None or measured < _MUCH_SLOWER * allowed):
        limit = "" if allowed is None else f" (allowed: {rate_in_words(allowed)})"
        seconds = max(waiting / measured, forecast or 0.0)
        return ExpectedEnd(seconds, f"at the measured {rate_in_words(measured)}{limit}")
    if forecast is not None:
        return ExpectedEnd(forecast, "by rate limits, ramp-up and the order of each key, if nothing fails")
    if allowed:
        return ExpectedEnd(waiting / allowed, f"at the allowed {rate_in_words(allowed)}, if nothing fails")
    return None
