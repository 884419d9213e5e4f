"""Watch whether PostgreSQL was restored from a backup, and hold everything when it was."""

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
    """Count a tick, and tell Redis, in one call; False: PostgreSQL is behind, and everything is held."""
    stand = restore_detection.rise()
    known = marks.raised(str(stand.database), stand.ticks)
    if known == stand.ticks:  # no number is given twice, but by a database that has forgotten the first time
        return _hold(known, stand.ticks - 1, alone=True)
    return _is_abreast(known, stand.ticks)


def look(marks: HighWater) -> bool:
    """The same before anything is sent, without counting; one call."""
    stand = restore_detection.stand()
    return stand is None or _is_abreast(marks.known(str(stand.database)), stand.ticks)


def is_behind(marks: HighWater) -> bool:
    """Whether Redis proves a restore that PostgreSQL was not told of; one call, and nothing is held."""
    stand = restore_detection.stand()
    known = marks.known(str(stand.database)) if stand else None
    now = restore_detection.stand()  # Redis is told what is committed: asked later, PostgreSQL knows no less
    return now is not None and known is not None and known > now.ticks


def hold_as_told(marks: HighWater, restored_to: datetime, *, by: str, reason: str, anew: bool) -> Hold:
    """Begin the hold that a person asked for, and know here what Redis knew: it proves no other restore. One call.

    Both or neither: a worker that died in between would leave a restore to be found again, and the hold begun anew.
    """
    stand = restore_detection.stand()
    known = marks.known(str(stand.database)) if stand else None

    def work() -> Hold:
        found = restore_hold.begin(restored_to, by=by, reason=reason, anew=anew)
        restore_detection.catch_up(known or 0)
        return found

    return rows.whole(work)


def _is_abreast(known: int | None, ticks: int) -> bool:
    """Redis is told what is committed: what it knows and PostgreSQL still does not, asked again, is forgotten."""
    if known is None or known <= ticks:
        return True
    now = restore_detection.stand()
    if now is None or known <= now.ticks:
        return True
    return _hold(known, now.ticks)


def _hold(known: int, ticks: int, *, alone: bool = False) -> bool:
    """Begin the hold with what proves it, or go on: whoever caught up in the meantime has held, for people to decide.

    `alone`: nobody else was given this number, so that nobody else knows.
    """
    last = Dispatch.objects.values_list("swept_at", flat=True).first()  # beat sweeps every ten seconds
    why = _WHY.format(known=known, ticks=ticks)

    def work() -> restore_hold.Hold | None:
        if not restore_detection.catch_up(known) and not alone:
            return None
        return restore_hold.begin(
            last or lanes.clock(), by=THE_SERVICE, reason=why, anew=True
        )  # one may be of the backup

    found = rows.whole(work)
    if found is None:
        return True
    logger.error("Nothing is sent: %s Run manage.py after_restore report.", found.reason)
    return False
