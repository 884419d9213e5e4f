"""Detect that PostgreSQL was restored from a backup, and hold everything.

Redis keeps the highest tick that PostgreSQL has committed. If PostgreSQL knows fewer ticks, it was restored.
"""

from __future__ import annotations

import logging
from datetime import datetime

from reprocessing.gateways.redis.tick_watermark import HighWater
from reprocessing.models import Dispatch
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_detection, restore_hold
from reprocessing.store.maintenance.restore_hold import Hold
from reprocessing.store.ordering import lanes
from reprocessing.store.safety.paused_runs import THE_SERVICE

logger = logging.getLogger(__name__)
_WHY = "Redis knows of {known:,} ticks of this database, and it of {ticks:,}: PostgreSQL was restored from a backup."


def tick(marks: HighWater) -> bool:
    """Count a tick in PostgreSQL and in Redis, with one call; return False if a restore was found, and all is held."""
    stand = restore_detection.rise()
    known = marks.raised(str(stand.database), stand.ticks)
    if known == stand.ticks:  # only a restored database gives the same number twice
        return _hold(known, stand.ticks - 1, alone=True)
    return _is_abreast(known, stand.ticks)


def look(marks: HighWater) -> bool:
    """Check the same before anything is sent, without counting a tick; one call."""
    stand = restore_detection.stand()
    return stand is None or _is_abreast(marks.known(str(stand.database)), stand.ticks)


def is_behind(marks: HighWater) -> bool:
    """Return whether Redis proves a restore that is not held yet; one call, and nothing is held."""
    known = _known(marks)
    now = restore_detection.stand()  # read after Redis, which only knows committed ticks
    return now is not None and known is not None and known > now.ticks


def _known(marks: HighWater) -> int | None:
    stand = restore_detection.stand()
    return marks.known(str(stand.database)) if stand else None


def hold_as_told(marks: HighWater, restored_to: datetime, *, by: str, reason: str, anew: bool) -> Hold:
    """Begin the hold that a person asked for, and catch up with Redis in the same transaction; one call.

    Without catching up, the same restore would be found again, and the hold begun anew.
    """
    known = _known(marks)

    def work() -> Hold:
        found = restore_hold.begin(restored_to, by=by, reason=reason, anew=anew)
        restore_detection.catch_up(known or 0)
        return found

    return rows.whole(work)


def _is_abreast(known: int | None, ticks: int) -> bool:
    """Return whether PostgreSQL knows all ticks that Redis knows; it is read again before the hold begins."""
    if known is None or known <= ticks:
        return True
    now = restore_detection.stand()
    return now is None or known <= now.ticks or _hold(known, now.ticks)


def _hold(known: int, ticks: int, *, alone: bool = False) -> bool:
    """Begin the hold; return True if another worker has begun it. `alone`: no other worker can have seen it."""
    last = Dispatch.objects.values_list("swept_at", flat=True).first()  # beat sweeps every ten seconds
    why = _WHY.format(known=known, ticks=ticks)

    def work() -> restore_hold.Hold | None:
        if not restore_detection.catch_up(known) and not alone:
            return None
        # anew: the backup itself may hold an old hold
        return restore_hold.begin(last or lanes.clock(), by=THE_SERVICE, reason=why, anew=True)

    found = rows.whole(work)
    if found is None:
        return True
    logger.error("Nothing is sent: %s Run manage.py after_restore report.", found.reason)
    return False
