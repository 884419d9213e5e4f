"""When AWS was asked last whether its own redrive moved messages of a DLQ, and which DLQs are to be asked about now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models import rows

#: Seconds for which an answer holds. A worker asks anew a little sooner, so that lanes need not wait for it.
HOLDS: Final = 60
_ASK_AFTER: Final = 45
#: Seconds after which a question without an answer is somebody else's to ask: no call takes longer.
_ANSWERED_WITHIN: Final = 20
#: DLQs that one worker asks about at a time.
_MOST: Final = 32

# The subselect is for the planner: the function's result is compared with an index.
_IN_SIGHT: Final[LiteralString] = """
EXISTS (SELECT FROM redrive_custody c
         WHERE c.dlq_id = d.id AND c.state = 'held' AND c.visible_until <= (SELECT redrive_now()))
"""

#: Of a DLQ d: copies of its messages are in sight, and AWS has not said for a minute whether it moved them. None of its
#: lanes is leased until it has: a message that AWS moved would be sent a second time (docs/adr/0032).
MOVES_UNKNOWN: Final[LiteralString] = f"""
(coalesce(d.native_known_at <= redrive_now() - make_interval(secs => {HOLDS}), true) AND {_IN_SIGHT})
"""

#: Of a DLQ d: it is so, and AWS was asked and did not answer. Its lanes wait for that, and for no worker.
WAITS_FOR_AWS: Final[LiteralString] = f"(d.native_unknown <> '' AND {MOVES_UNKNOWN})"

# Of runs that have a lane to lease now. Whoever gets a DLQ's id asks; a row that somebody has locked is not waited for.
_TO_ASK: Final[LiteralString] = f"""
UPDATE redrive_dlq SET native_asked_at = redrive_now()
 WHERE id IN (
    SELECT d.id FROM redrive_dlq d
     WHERE coalesce(d.native_known_at <= redrive_now() - make_interval(secs => {_ASK_AFTER}), true)
       AND coalesce(d.native_asked_at <= redrive_now() - make_interval(secs => {_ANSWERED_WITHIN}), true)
       AND d.native_at IS NULL AND d.stopped_at IS NULL AND d.mode <> 'observe'
       AND EXISTS (SELECT FROM redrive_run r
                    WHERE r.dlq_id = d.id AND r.state = 'running'
                      AND (%(runs)b::bigint[] IS NULL OR r.id = ANY(%(runs)b::bigint[]))
                      AND EXISTS (SELECT FROM redrive_lane n WHERE n.run_id = r.id AND n.due_at <= redrive_now()))
       AND {_IN_SIGHT} AND NOT EXISTS (SELECT FROM redrive_halt)
     ORDER BY d.native_asked_at NULLS FIRST LIMIT {_MOST} FOR NO KEY UPDATE OF d SKIP LOCKED)
RETURNING id
"""  # noqa: S608  # the inserted texts are constants

_ANSWERED: Final[LiteralString] = """
UPDATE redrive_dlq SET native_known_at = greatest(native_known_at, %(at)b::timestamptz), native_unknown = ''
 WHERE id = %(dlq)b
"""

_UNANSWERED: Final[LiteralString] = """
UPDATE redrive_dlq SET native_unknown = %(why)b::text WHERE id = %(dlq)b AND native_unknown <> %(why)b::text
"""


def dlqs_to_ask_about(runs: Sequence[int] | None) -> list[int]:
    """Return DLQs with lanes to lease about which AWS was not asked lately; the caller is the one to ask, at once.

    `runs`: lanes of these runs alone; None: of any.
    """
    return rows.column(int, _TO_ASK, {"runs": None if runs is None else list(runs)})


def answered(dlq: int, *, at: datetime) -> None:
    """Note that AWS has answered a question of this moment, by PostgreSQL's clock; what it said is committed before."""
    rows.execute(_ANSWERED, {"dlq": dlq, "at": at})


def unanswered(dlq: int, why: str) -> None:
    """Note why AWS did not answer."""
    rows.execute(_UNANSWERED, {"dlq": dlq, "why": why})
