"""When the next text may go to a destination: few an hour; what failed is retried, and given up in the end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

#: Texts of one hour to one destination. What happens beyond them waits, and is summed into the next text.
PER_HOUR: Final = 20
_HOUR: Final = timedelta(hours=1)
#: Between two texts to one destination: what happens meanwhile goes as one.
APART: Final = timedelta(seconds=60)
#: After a text that could not be sent; doubled after each further one.
FIRST_RETRY, LAST_RETRY = timedelta(seconds=30), timedelta(minutes=30)
#: What could not be sent for so long is given up.
GIVEN_UP_AFTER: Final = timedelta(days=1)
#: A condition that lasts is told again so often.
REMINDED_EVERY: Final = timedelta(days=1)


def next_text_at(sent: Sequence[datetime], now: datetime) -> datetime:
    """When the next text may go to a destination that was sent texts at these moments, the last of them now."""
    newest = sorted(moment for moment in sent if moment > now - _HOUR)[-PER_HOUR:]
    if len(newest) < PER_HOUR:
        return now + APART
    return max(now + APART, newest[0] + _HOUR)


def retry_at(failures: int, now: datetime) -> datetime:
    """When a text is tried again that failed so many times in a row, at least once."""
    doubled: int = 2 ** min(failures - 1, 10)
    return now + min(FIRST_RETRY * doubled, LAST_RETRY)
