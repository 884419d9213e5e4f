"""Find automatic runs whose redriven messages keep coming back as new letters in the DLQ, and pause the runs."""

from __future__ import annotations

from functools import partial
from typing import Final, LiteralString

from reprocessing.domain.safety.redrive_loop import DIFFERENT, ROUNDS, SAMPLE, WITHIN, NewestMessages, redrive_loop
from reprocessing.store import rows
from reprocessing.store.notifications.run_events import announce_loop
from reprocessing.store.safety.paused_runs import PausedRun, pause_run

#: How many of the newest letters of all DLQs are searched for letters of a suspected DLQ.
_READ: Final = 20_000

# Automatic runs whose DLQ had at least `least` deliveries, and as many captures, in this and the previous hour.
_SUSPECTED: Final[LiteralString] = """
SELECT r.id FROM redrive_run r
 WHERE r.kind = 'automatic' AND r.state = 'running'
   AND (SELECT coalesce(sum(f.n) FILTER (WHERE f.what = 'delivered'), 0) >= %(least)b::bigint
               AND coalesce(sum(f.n) FILTER (WHERE f.what = 'captured'), 0) >= %(least)b::bigint
          FROM redrive_hourly_count f
         WHERE f.dlq_id = r.dlq_id
           AND f.hour BETWEEN (SELECT redrive_now() - make_interval(hours => 2)) AND 'infinity')
 ORDER BY r.id
"""

# Letters that were captured before a person resumed the run are left out.
_NEWEST: Final[LiteralString] = """
WITH newest AS MATERIALIZED (
    SELECT l.id, l.body_hash, l.state FROM (SELECT * FROM redrive_letter ORDER BY id DESC LIMIT %(read)b::int) l
      JOIN redrive_run r ON r.id = %(run)b AND r.dlq_id = l.dlq_id
     WHERE l.captured_at > greatest(redrive_now() - make_interval(secs => %(within)b::float8), r.changed_at)
), sample AS (
    SELECT * FROM newest ORDER BY id DESC LIMIT %(sample)b::int
), judged AS (
    SELECT s.id, s.body_hash, count(n.id) >= %(rounds)b::int AS again
      FROM sample s LEFT JOIN newest n ON n.body_hash = s.body_hash AND n.id < s.id AND n.state = 'delivered'
     GROUP BY s.id, s.body_hash
)
SELECT count(*)::int AS seen, count(*) FILTER (WHERE again)::int AS again,
       count(DISTINCT body_hash) FILTER (WHERE again)::int AS different
  FROM judged
"""


def pause_looping_runs() -> list[PausedRun]:
    """Pause automatic runs whose redriven messages keep coming back as new letters; return the paused runs.

    A run is paused if at least 80 % of the DLQ's newest 50 messages have a body that was delivered at least twice in
    the last hour, and if there are at least 10 different such bodies (`domain.safety.redrive_loop`). Do not call this
    function in a transaction.
    """
    paused: list[PausedRun] = []
    for run in rows.column(int, _SUSPECTED, {"least": DIFFERENT * ROUNDS}):
        values = {"run": run, "read": _READ, "within": WITHIN, "sample": SAMPLE, "rounds": ROUNDS}
        newest = rows.fetch(NewestMessages, _NEWEST, values)[0]
        if why := redrive_loop(newest):
            done = rows.in_transaction(partial(_pause, run, why, newest.again))
            paused += [done] if done else []
    return paused


def _pause(run: int, why: str, messages: int) -> PausedRun | None:
    paused = pause_run(run, why)
    if paused:
        announce_loop(paused.run_id, paused.name, dlq_id=paused.dlq_id, dlq=paused.dlq, messages=messages)
    return paused
