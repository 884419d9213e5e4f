"""Detect that PostgreSQL was restored from a backup, and begin the hold: all sends stop until a person has decided.

A tick is the task that beat sends every 2 s. PostgreSQL counts the ticks, and Redis keeps the highest committed count.
If the count in PostgreSQL is lower, PostgreSQL was restored.
"""

from __future__ import annotations

import logging
from datetime import datetime

from reprocessing.gateways.redis.tick_watermark import TickWatermark
from reprocessing.models import TaskHints
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_detection, restore_hold
from reprocessing.store.maintenance.restore_hold import RestoreHold
from reprocessing.store.ordering import lanes
from reprocessing.store.safety.paused_runs import THE_SERVICE

logger = logging.getLogger(__name__)
_WHY = "Redis knows {known:,} ticks of beat, and PostgreSQL {ticks:,}: PostgreSQL was restored from a backup."


def count_tick(marks: TickWatermark) -> bool:
    """Count a tick of beat in PostgreSQL and in Redis; return whether PostgreSQL is current.

    False: PostgreSQL was restored from a backup. Then the hold has begun: all sends are stopped.
    """
    stored = restore_detection.count_tick()
    known = marks.raised(str(stored.database), stored.ticks)
    if known == stored.ticks:  # only a restored database reaches the same number a second time
        return _hold(known, stored.ticks - 1, alone=True)
    return _is_current(known, stored.ticks)


def is_database_current(marks: TickWatermark) -> bool:
    """Return whether PostgreSQL is current; False: it was restored from a backup, and the hold has stopped all sends.

    Call this function before sends. A call counts no tick, and costs one call to Redis.
    """
    stored = restore_detection.read_ticks()
    return stored is None or _is_current(marks.known(str(stored.database)), stored.ticks)


def is_behind(marks: TickWatermark) -> bool:
    """Return whether Redis shows that PostgreSQL was restored, and sends are not stopped yet. Change nothing."""
    known = _known(marks)
    now = restore_detection.read_ticks()  # read after Redis, which only knows committed ticks
    return now is not None and known is not None and known > now.ticks


def _known(marks: TickWatermark) -> int | None:
    stored = restore_detection.read_ticks()
    return marks.known(str(stored.database)) if stored else None


def begin_hold(marks: TickWatermark, restored_to: datetime, *, by: str, reason: str, anew: bool) -> RestoreHold:
    """Begin the hold (stop all sends) for a person, and raise PostgreSQL's tick count to the count in Redis.

    Both are written in one transaction. Without the raised count, the same restore would be detected again.
    `restored_to`: the time of the backup. `anew`: True: the database was restored once more. Then a new hold begins,
    and the decisions of the earlier hold are deleted.
    """
    known = _known(marks)

    def work() -> RestoreHold:
        found = restore_hold.begin_hold(restored_to, by=by, reason=reason, anew=anew)
        restore_detection.raise_ticks(known or 0)
        return found

    return rows.in_transaction(work)


def _is_current(known: int | None, ticks: int) -> bool:
    """Return whether PostgreSQL has counted at least as many ticks as Redis. If not, it was restored: begin the hold.

    `known`: the count in Redis; None: not known. `ticks`: the count in PostgreSQL.
    """
    if known is None or known <= ticks:
        return True
    now = restore_detection.read_ticks()
    return now is None or known <= now.ticks or _hold(known, now.ticks)


def _hold(known: int, ticks: int, *, alone: bool = False) -> bool:
    """Begin the hold (stop all sends) and return False. If another worker has begun it already, return True.

    `alone`: True: no other worker can begin the hold now, so do not check.
    """
    last = TaskHints.objects.values_list("swept_at", flat=True).first()  # the last sweep before the backup
    why = _WHY.format(known=known, ticks=ticks)

    def work() -> restore_hold.RestoreHold | None:
        if not restore_detection.raise_ticks(known) and not alone:
            return None
        # anew: the backup may contain an older hold
        return restore_hold.begin_hold(last or lanes.database_now(), by=THE_SERVICE, reason=why, anew=True)

    found = rows.in_transaction(work)
    if found is None:
        return True
    logger.error("Nothing is sent: %s Run manage.py after_restore report.", found.reason)
    return False
