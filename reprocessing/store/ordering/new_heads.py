"""Earlier letters that come onto a lane that waits: it is theirs at once, whoever it waited for."""

from __future__ import annotations

from collections.abc import Collection

from reprocessing.store import rows
from reprocessing.store.ordering import lanes

# A lane keeps quiet for them as a fresh one does: a letter before them may still be retried in its queue.
_QUIET = """
UPDATE redrive_lane n
   SET due_at = greatest(n.due_at, l.captured_at + make_interval(secs => coalesce(d.quiet_for, t.visibility::float8)))
  FROM redrive_letter l
  JOIN redrive_dlq d ON d.id = l.dlq_id JOIN redrive_target t ON t.id = l.target_id
 WHERE l.id = ANY(%(heads)b::bigint[]) AND NOT l.single AND n.id = l.lane_id AND n.phase = 'ready'
"""


def give(ahead: Collection[int]) -> None:
    """Have lanes, that were held or not due yet, go by the earlier letters that were enlisted onto them.

    Without, they would wait as long as the later letter has to, and for its run. The lanes are locked, and nobody's.
    """
    if ahead:
        stand = lanes.advance(sorted(ahead), [None] * len(ahead))
        rows.execute(_QUIET, {"heads": [one.letter_id for one in stand if one.letter_id is not None]})
