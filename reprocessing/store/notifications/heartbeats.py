"""Read when beat and the workers were last active, and record when the service checked whether to notify people."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.domain.notifications.heartbeat import Signs
from reprocessing.store import rows
from reprocessing.store.ordering.stalled_lanes import TICK_TASK

_SIGNS: Final[LiteralString] = """
SELECT (SELECT sum(total_run_count)::bigint FROM django_celery_beat_periodictask WHERE task = %(tick)b) AS ticks,
       (SELECT consumed_at FROM redrive_heartbeat WHERE queue = %(control)b) AS consumed_at
"""

# Stores two times, in seconds since 1970: the last check, and the first check since the last gap.
_LOOKED: Final[LiteralString] = """
WITH last AS MATERIALIZED (
    SELECT value FROM redrive_metric WHERE (name, place, part) = ('conditions', 0, 'looked')
), looked AS (
    INSERT INTO redrive_metric (name, place, part, value)
    VALUES ('conditions', 0, 'looked', extract(epoch FROM redrive_now()))
    ON CONFLICT (name, place, part) DO UPDATE SET value = excluded.value
)
INSERT INTO redrive_metric AS m (name, place, part, value)
VALUES ('conditions', 0, 'since', extract(epoch FROM redrive_now()))
ON CONFLICT (name, place, part) DO UPDATE
   SET value = CASE WHEN coalesce((SELECT value FROM last), 0) < excluded.value - %(gap)b::float8 THEN excluded.value
                    ELSE m.value END
RETURNING (extract(epoch FROM redrive_now()) - value)::float8 AS seconds
"""


def read_signs(control: str) -> Signs:
    """Return how many ticks (regular tasks) beat has sent to the queue `control`, and when a worker last took one."""
    return rows.fetch(Signs, _SIGNS, {"tick": TICK_TASK, "control": control})[0]


def record_check(*, gap: float) -> float:
    """Record that all conditions for notifications are checked now; return for how long they are checked without a gap.

    The result is in seconds. A gap is a time of more than `gap` seconds without a check.
    """
    return rows.value(float, _LOOKED, {"gap": gap})
