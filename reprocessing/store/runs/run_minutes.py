"""Count the attempts of each run by minute, and read the counts for the chart of a run's rate.

A worker adds its counts every few seconds. Counts that a killed worker had not yet added are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from reprocessing.domain.runs.rate_chart import MinuteCount
from reprocessing.store import rows

#: Highest number of minutes that a page reads: the minutes of a day.
_MOST: Final = 1_440
#: Days after which counts are deleted.
_KEPT: Final = 15

# Sorted, so that two concurrent statements do not deadlock.
_ADD = """
INSERT INTO redrive_run_minute AS m (run_id, minute, sent)
SELECT * FROM unnest(%(runs)b::bigint[], %(minutes)b::timestamptz[], %(sent)b::bigint[]) ORDER BY 1, 2
ON CONFLICT (run_id, minute) DO UPDATE SET sent = m.sent + excluded.sent
"""

_OF_RUN = """
SELECT minute, sent FROM redrive_run_minute WHERE run_id = %(run)b ORDER BY minute DESC LIMIT %(most)b
"""

# Reads the oldest minutes by index: without ORDER BY and LIMIT, the planner would read all minutes.
_FORGET = """
DELETE FROM redrive_run_minute WHERE id IN (
    SELECT id FROM redrive_run_minute WHERE minute < (SELECT redrive_now() - make_interval(days => %(days)b::int))
     ORDER BY minute LIMIT %(limit)b)
"""


def minute_of(moment: datetime) -> datetime:
    """Return a time without its seconds: the beginning of its minute."""
    return moment.replace(second=0, microsecond=0)


def add(sent: Mapping[tuple[int, datetime], int]) -> None:
    """Add numbers of attempts, by run id and minute, in one statement."""
    if sent:
        values = {
            "runs": [run for run, _ in sent], "minutes": [minute for _, minute in sent], "sent": list(sent.values()),
        }  # fmt: skip
        rows.execute(_ADD, values)


def minutes_of_run(run: int) -> list[MinuteCount]:
    """Return the newest minutes in which a run sent messages, at most 1,440, the oldest first."""
    return rows.fetch(MinuteCount, _OF_RUN, {"run": run, "most": _MOST})[::-1]


def delete_old_minutes(*, limit: int) -> int:
    """Delete up to `limit` counts that are older than 15 days; return how many."""
    return rows.execute(_FORGET, {"days": _KEPT, "limit": limit})
