"""Stopping and resuming sends: of one dlq, or of everything. Each with its review, in the same statement.

Whatever may send asks `lanes.ACTIVE_RUNS` when it leases and when it commits an intent; both read these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.models import rows
from reprocessing.models.dead_letter_queue import DeadLetterQueue


@dataclass(frozen=True, slots=True)
class Stop:
    """Since when nothing is sent, who stopped it, and why. `new`: it came or went with this call."""

    since: datetime
    by: str
    reason: str
    new: bool


_STOP = """
WITH was AS (
    SELECT id, stopped_at, stopped_by, stop_reason FROM redrive_dlq WHERE id = %(dlq)b FOR UPDATE
), stopped AS (
    UPDATE redrive_dlq d
       SET stopped_at = redrive_now(), stopped_by = %(by)b::text, stop_reason = %(reason)b::text
      FROM was WHERE d.id = was.id AND was.stopped_at IS NULL
    RETURNING d.id, d.stopped_at, d.stopped_by, d.stop_reason
), noted AS (
    INSERT INTO redrive_review (act, dlq_id, by, reason, before, after)
    SELECT 'stopped', id, stopped_by, stop_reason, '{"stopped": false}', '{"stopped": true}' FROM stopped
)
SELECT stopped_at AS since, stopped_by AS by, stop_reason AS reason, true AS new FROM stopped
UNION ALL
SELECT stopped_at, stopped_by, stop_reason, false FROM was WHERE stopped_at IS NOT NULL
"""

# The row that stands answers too; one that is new was never anybody's to overwrite.
_HALT = """
WITH halt AS (
    INSERT INTO redrive_halt AS h (id, since, by, reason)
    VALUES (1, redrive_now(), %(by)b::text, %(reason)b::text)
    ON CONFLICT (id) DO UPDATE SET id = h.id
    RETURNING h.since, h.by, h.reason, h.xmax = 0 AS new
), noted AS (
    INSERT INTO redrive_review (act, by, reason, before, after)
    SELECT 'stopped', by, reason, '{"stopped": false}', '{"stopped": true}' FROM halt WHERE new
)
SELECT since, by, reason, new FROM halt
"""

_RESUME = """
WITH was AS (
    SELECT id, stopped_at AS since, stopped_by AS by, stop_reason AS reason FROM redrive_dlq
     WHERE id = %(dlq)b AND stopped_at IS NOT NULL
       AND (%(seen)b::timestamptz IS NULL OR stopped_at = %(seen)b::timestamptz) FOR UPDATE
), resumed AS (
    UPDATE redrive_dlq d SET stopped_at = NULL, stopped_by = '', stop_reason = ''
      FROM was WHERE d.id = was.id
), noted AS (
    INSERT INTO redrive_review (act, dlq_id, by, reason, before, after)
    SELECT 'resumed', id, %(by)b::text, %(reason)b::text,
           jsonb_build_object('stopped', true, 'since', since, 'by', by, 'reason', reason), '{"stopped": false}'
      FROM was
)
SELECT since, by, reason, true AS new FROM was
"""

_RESUME_ALL = """
WITH was AS (
    DELETE FROM redrive_halt WHERE %(seen)b::timestamptz IS NULL OR since = %(seen)b::timestamptz
    RETURNING since, by, reason
), noted AS (
    INSERT INTO redrive_review (act, by, reason, before, after)
    SELECT 'resumed', %(by)b::text, %(reason)b::text,
           jsonb_build_object('stopped', true, 'since', since, 'by', by, 'reason', reason), '{"stopped": false}'
      FROM was
)
SELECT since, by, reason, true AS new FROM was
"""

_STOPPED = """
SELECT stopped_at AS since, stopped_by AS by, stop_reason AS reason, false AS new FROM redrive_dlq
 WHERE id = %(dlq)b AND stopped_at IS NOT NULL
"""

_HALTED = "SELECT since, by, reason, false AS new FROM redrive_halt"


def stop(dlq: int | None, *, by: str, reason: str) -> Stop:
    """Stop every send of this dlq, or with None of all; who stopped it first stays who stopped it.

    Returns:
        The stop that now holds; not `new` where it held already.

    Raises:
        DeadLetterQueue.DoesNotExist: there is no such dlq.
    """
    found = rows.fetch(Stop, _HALT if dlq is None else _STOP, {"dlq": dlq, "by": by, "reason": reason})
    if not found:
        raise DeadLetterQueue.DoesNotExist(f"no dlq has the id {dlq}")
    return found[0]


def resume(dlq: int | None, *, by: str, reason: str, seen: datetime | None = None) -> Stop | None:
    """Let this dlq send again, or with None lift the stop of all; the stop that is gone, or None when there was none.

    Each stop is lifted by itself: a dlq that was stopped too stays stopped, and none sends while all are stopped.
    `seen`: since when the stop holds that is to be lifted, and no other; None: whichever there is.
    """
    values = {"dlq": dlq, "by": by, "reason": reason, "seen": seen}
    found = rows.fetch(Stop, _RESUME_ALL if dlq is None else _RESUME, values)
    return found[0] if found else None


def stopped(dlq: int | None) -> Stop | None:
    """The stop of this dlq itself, or with None the stop of all; None where there is none."""
    found = rows.fetch(Stop, _HALTED if dlq is None else _STOPPED, {"dlq": dlq})
    return found[0] if found else None
