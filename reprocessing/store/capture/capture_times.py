"""Find letters by the time of their capture, for which there is no index."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from reprocessing.store import rows

#: Letters of statements that run at the same time have ids in any order. No statement that writes letters takes longer.
_DISORDER: Final = timedelta(hours=1)

# Ids rise with the time of capture, so the id is found by bisection, in about as many steps as the highest id has bits.
# Letters with ids below `low` were captured before `since`; those with ids of `high` or more were not.
_FIRST = """
WITH RECURSIVE step AS (
    SELECT coalesce(min(id), 0) AS low, coalesce(max(id), -1) + 1 AS high FROM redrive_letter
    UNION ALL
    SELECT CASE WHEN middle.captured_at < %(since)b::timestamptz THEN middle.id + 1 ELSE step.low END,
           CASE WHEN middle.captured_at < %(since)b::timestamptz THEN step.high ELSE (step.low + step.high) / 2 END
      FROM step CROSS JOIN LATERAL (
           SELECT id, captured_at FROM redrive_letter WHERE id >= (step.low + step.high) / 2 ORDER BY id LIMIT 1) middle
     WHERE step.low < step.high
)
SELECT max(low) AS first FROM step
"""


def first_id(since: datetime) -> int:
    """Return an id below which no letter was captured at `since` or later.

    Letters that were captured up to about an hour before `since` may have this id or higher ids, too.
    """
    return rows.value(int, _FIRST, {"since": since - _DISORDER})
