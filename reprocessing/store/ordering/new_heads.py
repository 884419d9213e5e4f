"""Reschedule waiting lanes after a run has added letters that come before the lanes' former first letters."""

from __future__ import annotations

from collections.abc import Collection

from reprocessing.store import rows
from reprocessing.store.ordering import lane_state

# The lane waits as long as a new lane: the source queue may still retry an earlier message of the key.
_QUIET = """
UPDATE redrive_lane n
   SET due_at = greatest(n.due_at, l.captured_at + make_interval(secs => coalesce(d.new_key_delay,
          t.visibility::float8)))
  FROM redrive_letter l
  JOIN redrive_dlq d ON d.id = l.dlq_id JOIN redrive_target t ON t.id = l.target_id
 WHERE l.id = ANY(%(heads)b::bigint[]) AND NOT l.single AND n.id = l.lane_id AND n.phase = 'ready'
"""


def move_to_new_heads(ahead: Collection[int]) -> None:
    """Reschedule these lanes, which are held or not due, because a run added a letter before each lane's first letter.

    Without this call, a lane would wait for the due time and the run of its former first letter. The caller has locked
    the lanes, and no worker leases them. `ahead`: the ids of the lanes.
    """
    if ahead:
        moved = lane_state.advance(sorted(ahead), [None] * len(ahead))
        rows.execute(_QUIET, {"heads": [lane.letter_id for lane in moved if lane.letter_id is not None]})
