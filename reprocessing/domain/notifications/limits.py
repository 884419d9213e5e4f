"""Decide when the next text may be sent to a notification destination: rate limit and retries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

#: Max texts in an hour to one destination. Further notifications wait, and share the next text.
PER_HOUR: Final = 20
_HOUR: Final = timedelta(hours=1)
#: Least time between two texts to one destination: `APART`, or `URGENT_APART` before a text with a new urgent incident.
#: Incidents that open in this time are sent as one text.
APART, URGENT_APART = timedelta(seconds=60), timedelta(seconds=10)
#: Backoff after a text could not be sent: the first delay, which each further failure doubles, and the max delay.
FIRST_RETRY, LAST_RETRY = timedelta(seconds=30), timedelta(minutes=30)
#: After this time, a notification that could not be sent is dropped.
GIVEN_UP_AFTER: Final = timedelta(days=1)
#: How often people are reminded of a condition that lasts.
REMINDED_EVERY: Final = timedelta(days=1)


def next_text_at(sent: Sequence[datetime], last_sent: datetime) -> datetime:
    """Return when the next urgent notification may go to a destination: after 10 s, at most 20 an hour.

    `last_sent`: when the latest notification went there. `sent`: the times of all notifications that went there,
    including the latest. The caller makes a notification that is not urgent wait for at least 60 s (`APART`).
    """
    newest = sorted(moment for moment in sent if moment > last_sent - _HOUR)[-PER_HOUR:]
    if len(newest) < PER_HOUR:
        return last_sent + URGENT_APART
    return max(last_sent + URGENT_APART, newest[0] + _HOUR)


def retry_at(failures: int, now: datetime) -> datetime:
    """Return when to send a text again that could not be sent `failures` times in a row (at least 1).

    The delay is 30 s after the first failure, doubles with each further failure, and is at most 30 minutes.
    """
    doubled: int = 2 ** min(failures - 1, 10)
    return now + min(FIRST_RETRY * doubled, LAST_RETRY)
