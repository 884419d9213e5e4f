"""Stopping and resuming sends: of one dlq, of one lane, or of everything. Each with its review, in the same statement.

Whatever may send asks `lanes.ACTIVE_RUNS`, and whether its lane is stopped, when it leases and when it commits an
intent; these read these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.domain.errors import BackupIsUnreconciled
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.lane import Lane
from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class Stop:
    """Since when nothing is sent, who stopped it, and why. `new`: it came or went with this call.

    `restored`: it is the hold after a restore, which `after_restore` alone lifts.
    """

    since: datetime
    by: str
    reason: str
    new: bool
    restored: bool = False


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
    DELETE FROM redrive_halt WHERE id = 1 AND (%(seen)b::timestamptz IS NULL OR since = %(seen)b::timestamptz)
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

# After a restore everything is held, whoever has stopped it too.
_HALTED = "SELECT since, by, reason, false AS new, id = 2 AS restored FROM redrive_halt ORDER BY id DESC LIMIT 1"


_HELD = "SELECT since, by, reason, false AS new FROM redrive_halt WHERE id = 2"

_STOPPED_LANE = """
SELECT stopped_at AS since, stopped_by AS by, stop_reason AS reason, false AS new FROM redrive_lane
 WHERE id = %(lane)b AND stopped_at IS NOT NULL
"""

_STOP_LANE = """
WITH was AS (
    SELECT id, stopped_at, stopped_by, stop_reason FROM redrive_lane WHERE id = %(lane)b FOR UPDATE
), stopped AS (
    UPDATE redrive_lane n
       SET stopped_at = redrive_now(), stopped_by = %(by)b::text, stop_reason = %(reason)b::text
      FROM was WHERE n.id = was.id AND was.stopped_at IS NULL
    RETURNING n.id, n.dlq_id, n.key_hash, n.stopped_at, n.stopped_by, n.stop_reason
), noted AS (
    INSERT INTO redrive_review (act, dlq_id, by, reason, before, after)
    SELECT 'stopped', dlq_id, stopped_by, stop_reason, jsonb_build_object('stopped', false, 'lane', id),
           jsonb_build_object('stopped', true, 'lane', id, 'key_hash', encode(key_hash, 'hex'))
      FROM stopped
)
SELECT stopped_at AS since, stopped_by AS by, stop_reason AS reason, true AS new FROM stopped
UNION ALL
SELECT stopped_at, stopped_by, stop_reason, false FROM was WHERE stopped_at IS NOT NULL
"""

# Whoever was told of it while it was stopped took nothing: it is to be told of again.
_RESUME_LANE = """
WITH was AS (
    SELECT id, dlq_id, key_hash, stopped_at AS since, stopped_by AS by, stop_reason AS reason FROM redrive_lane
     WHERE id = %(lane)b AND stopped_at IS NOT NULL
       AND (%(seen)b::timestamptz IS NULL OR stopped_at = %(seen)b::timestamptz) FOR UPDATE
), resumed AS (
    UPDATE redrive_lane n SET stopped_at = NULL, stopped_by = '', stop_reason = '', hinted_until = NULL
      FROM was WHERE n.id = was.id
), noted AS (
    INSERT INTO redrive_review (act, dlq_id, by, reason, before, after)
    SELECT 'resumed', dlq_id, %(by)b::text, %(reason)b::text,
           jsonb_build_object('stopped', true, 'since', since, 'by', by, 'reason', reason, 'lane', id),
           jsonb_build_object('stopped', false, 'lane', id, 'key_hash', encode(key_hash, 'hex'))
      FROM was
)
SELECT since, by, reason, true AS new FROM was
"""


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

    Raises:
        BackupIsUnreconciled: everything is held after a restore, which this does not lift; nothing was done.
    """
    if dlq is None:
        refuse_while_held()
    values = {"dlq": dlq, "by": by, "reason": reason, "seen": seen}
    found = rows.fetch(Stop, _RESUME_ALL if dlq is None else _RESUME, values)
    return found[0] if found else None


def stopped(dlq: int | None) -> Stop | None:
    """The stop of this dlq itself, or with None the stop of all; None where there is none."""
    found = rows.fetch(Stop, _HALTED if dlq is None else _STOPPED, {"dlq": dlq})
    return found[0] if found else None


def in_words(dlq: DeadLetterQueue) -> str:
    """What stops the sends of this dlq, by whom and why, in a sentence; empty where nothing does."""
    for stop, what in ((stopped(None), "Everything"), (stopped(dlq.pk), dlq.name)):
        if stop:
            return f'{what} is stopped by {stop.by} ("{stop.reason}"): nothing is sent until somebody lets it go on.'
    return ""


def refuse_while_held() -> None:
    """Refuse to let everything go on while it is held after a restore.

    Raises:
        BackupIsUnreconciled: it is; the message names the command that ends it.
    """
    if found := rows.fetch(Stop, _HELD, {}):
        one = found[0]
        raise BackupIsUnreconciled(
            f'Everything is held since {one.since:%Y-%m-%d %H:%M:%S} UTC by {one.by} ("{one.reason}"): PostgreSQL was '
            "restored from a backup, and what was sent since is not known to it. Nothing was done. Look at "
            "manage.py after_restore report. Then decide (after_restore resolve) and end it (after_restore release)."
        )


def stop_lane(lane: int, *, by: str, reason: str) -> Stop:
    """Stop every send of this lane; who stopped it first stays who stopped it.

    Returns:
        The stop that now holds; not `new` where it held already.

    Raises:
        Lane.DoesNotExist: there is no such lane.
    """
    found = rows.fetch(Stop, _STOP_LANE, {"lane": lane, "by": by, "reason": reason})
    if not found:
        raise Lane.DoesNotExist(f"no lane has the id {lane}")
    return found[0]


def resume_lane(lane: int, *, by: str, reason: str, seen: datetime | None = None) -> Stop | None:
    """Let this lane send again; the stop that is gone, or None when there was none, or another than was `seen`."""
    found = rows.fetch(Stop, _RESUME_LANE, {"lane": lane, "by": by, "reason": reason, "seen": seen})
    return found[0] if found else None


def stopped_lane(lane: int) -> Stop | None:
    """The stop of this lane itself; None where there is none."""
    found = rows.fetch(Stop, _STOPPED_LANE, {"lane": lane})
    return found[0] if found else None
