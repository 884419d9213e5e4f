"""The statements that call letters back from their lanes, whose messages AWS may have moved while they waited there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, LiteralString

from reprocessing.models import lanes, rows

#: Lanes of one transaction.
_GROUP: Final = 500

# A copy that is out of sight AWS cannot have moved. One whose letter may lie in its target as well, since an attempt
# ended unknown, keeps its lane: it is sent once more by design.
_MAY_BE_GONE: Final[LiteralString] = """
  FROM redrive_custody c JOIN redrive_letter l ON l.id = c.letter_id
 WHERE c.dlq_id = %(dlq)b AND c.state = 'held' AND c.visible_until <= redrive_now()
   AND coalesce(c.visible_until < %(until)b::timestamptz, true) AND l.state = 'waiting'
   AND NOT EXISTS (SELECT FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
                    WHERE a.letter_id = l.id AND a.outcome = 'unknown' AND a.returned_at IS NULL
                      AND coalesce(a.deadline, a.closed_at + make_interval(secs => t.window)) > redrive_now())
"""

_LANES = f"SELECT DISTINCT l.lane_id {_MAY_BE_GONE} ORDER BY 1"  # the inserted text is a constant
_ANY = f"SELECT EXISTS (SELECT {_MAY_BE_GONE}) AS is_so"

_CALL_BACK = f"""
WITH moved AS (SELECT l.id {_MAY_BE_GONE} AND l.lane_id = ANY(%(lanes)b::bigint[]))
UPDATE redrive_letter l
   SET state = 'captured', objection = 'moved_by_aws', detail = '', due_at = NULL, run_id = NULL, lane_id = NULL
  FROM moved m WHERE l.id = m.id AND l.state = 'waiting'
"""  # noqa: S608  # as above

# What runs have to send, and a copy in sight: by indexes alone, whatever a dlq holds.
_EXPOSED = """
SELECT d.id AS dlq_id FROM redrive_dlq d
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint) AND d.native_at IS NULL
   AND EXISTS (SELECT FROM redrive_run r JOIN redrive_letter l ON l.run_id = r.id AND l.state = 'waiting'
                WHERE r.dlq_id = d.id AND r.state IN ('running', 'paused'))
   AND EXISTS (SELECT FROM redrive_custody c
                WHERE c.dlq_id = d.id AND c.state = 'held' AND c.visible_until <= redrive_now())
 ORDER BY d.id
"""


@dataclass(frozen=True, slots=True)
class _Lane:
    lane_id: int


@dataclass(frozen=True, slots=True)
class _Answer:
    is_so: bool


@dataclass(frozen=True, slots=True)
class _Dlq:
    dlq_id: int


def exposed(dlq: int | None = None) -> list[int]:
    """The dlqs, or this one, that are ours, and whose letters' copies AWS could move while these wait to be sent."""
    return [one.dlq_id for one in rows.fetch(_Dlq, _EXPOSED, {"dlq": dlq})]


def is_needed(dlq: int, *, until: datetime | None = None) -> bool:
    """Whether letters wait in lanes whose copies are in sight."""
    return rows.fetch(_Answer, _ANY, {"dlq": dlq, "until": until})[0].is_so


def letters(dlq: int, *, until: datetime | None = None) -> int:
    """Take letters that wait, and whose copies are in sight, off their lanes and out of their runs; how many.

    They stand as those do that AWS may have moved before anybody asked for them: the next capture tells of each whether
    it is there yet. In transactions of their own, by lane: whoever locks lanes first may wait for the row of their dlq.
    The owner of a leased lane finds out before it sends anything. `until`: as in `comebacks.let_go`.
    """
    values = {"dlq": dlq, "until": until}
    found = [one.lane_id for one in rows.fetch(_Lane, _LANES, values)]
    groups = [found[at : at + _GROUP] for at in range(0, len(found), _GROUP)]
    return sum(rows.whole(partial(_call_back, values, ids)) for ids in groups)


def _call_back(values: Mapping[str, object], ids: Sequence[int]) -> int:
    free = [None] * len(ids)
    lanes.lock(ids, free)
    done = rows.execute(_CALL_BACK, {**values, "lanes": list(ids)})
    lanes.advance(ids, free)
    return done
