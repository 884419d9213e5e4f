"""Stop and resume the sends of a DLQ, of a lane, or of all DLQs. The same statement writes the audit log entry.

Workers lease no lanes whose sends are stopped, so nothing is sent. The SQL condition `active_runs.ACTIVE_RUNS` leaves
out runs of stopped DLQs; `stopped_at` marks a stopped lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.errors import RestoreUnresolved
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.lane import Lane
from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class Stop:
    """The fact that sends are stopped: since when, by whom, and why."""

    since: datetime
    by: str
    reason: str
    new: bool  #: whether the call that returned this stop began or lifted it
    restored: bool = False  #: the stop is the hold after a restore, which only the command after_restore lifts


_COLUMNS: Final[LiteralString] = "stopped_at AS since, stopped_by AS by, stop_reason AS reason"
# Additional JSON fields of an audit log entry about a lane: `before` has the lane's id, `after` the id and the key.
_NOTHING: Final[LiteralString] = "jsonb_build_object()"
_LANE: Final[LiteralString] = "jsonb_build_object('lane', id)"
_KEY: Final[LiteralString] = "jsonb_build_object('lane', id, 'key_hash', encode(key_hash, 'hex'))"

_STOP_ROW: Final[LiteralString] = f"""
WITH was AS (
    SELECT id, stopped_at, stopped_by, stop_reason FROM {{table}} WHERE id = %(id)b FOR UPDATE
), stopped AS (
    UPDATE {{table}} r
       SET stopped_at = redrive_now(), stopped_by = %(by)b::text, stop_reason = %(reason)b::text
      FROM was WHERE r.id = was.id AND was.stopped_at IS NULL RETURNING r.*
), noted AS (
    INSERT INTO redrive_audit_entry (act, dlq_id, by, reason, before, after)
    SELECT 'stopped', {{dlq}}, stopped_by, stop_reason, jsonb_build_object('stopped', false) || {{before}},
           jsonb_build_object('stopped', true) || {{after}}
      FROM stopped
)
SELECT {_COLUMNS}, true AS new FROM stopped
UNION ALL
SELECT {_COLUMNS}, false FROM was WHERE stopped_at IS NOT NULL
"""  # noqa: S608  # the inserted text is a constant

_RESUME_ROW: Final[LiteralString] = f"""
WITH was AS (
    SELECT r.*, {_COLUMNS} FROM {{table}} r
     WHERE id = %(id)b AND stopped_at IS NOT NULL
       AND (%(seen)b::timestamptz IS NULL OR stopped_at = %(seen)b::timestamptz) FOR UPDATE
), resumed AS (
    UPDATE {{table}} r SET stopped_at = NULL, stopped_by = '', stop_reason = ''{{also}}
      FROM was WHERE r.id = was.id
), noted AS (
    INSERT INTO redrive_audit_entry (act, dlq_id, by, reason, before, after)
    SELECT 'resumed', {{dlq}}, %(by)b::text, %(reason)b::text,
           jsonb_build_object('stopped', true, 'since', since, 'by', by, 'reason', reason) || {{before}},
           jsonb_build_object('stopped', false) || {{after}}
      FROM was
)
SELECT since, by, reason, true AS new FROM was
"""  # noqa: S608  # the inserted text is a constant

_STOPPED_ROW: Final[LiteralString] = f"""
SELECT {_COLUMNS}, false AS new FROM {{table}} WHERE id = %(id)b AND stopped_at IS NOT NULL
"""  # noqa: S608  # the inserted text is a constant

_STOP = _STOP_ROW.format(table="redrive_dlq", dlq="id", before=_NOTHING, after=_NOTHING)
_STOP_LANE = _STOP_ROW.format(table="redrive_lane", dlq="dlq_id", before=_LANE, after=_KEY)
_RESUME = _RESUME_ROW.format(table="redrive_dlq", dlq="id", before=_NOTHING, after=_NOTHING, also="")
# Workers ignored the task hints of the stopped lane, so the lane needs a new hint.
_RESUME_LANE = _RESUME_ROW.format(
    table="redrive_lane", dlq="dlq_id", before=_LANE, after=_KEY, also=", hinted_until = NULL"
)

# An existing stop is returned unchanged.
_HALT = """
WITH halt AS (
    INSERT INTO redrive_global_stop AS h (id, since, by, reason)
    VALUES (1, redrive_now(), %(by)b::text, %(reason)b::text)
    ON CONFLICT (id) DO UPDATE SET id = h.id
    RETURNING h.since, h.by, h.reason, h.xmax = 0 AS new
), noted AS (
    INSERT INTO redrive_audit_entry (act, by, reason, before, after)
    SELECT 'stopped', by, reason, '{"stopped": false}', '{"stopped": true}' FROM halt WHERE new
)
SELECT since, by, reason, new FROM halt
"""

_RESUME_ALL = """
WITH was AS (
    DELETE FROM redrive_global_stop WHERE id = 1 AND (%(seen)b::timestamptz IS NULL OR since = %(seen)b::timestamptz)
    RETURNING since, by, reason
), noted AS (
    INSERT INTO redrive_audit_entry (act, by, reason, before, after)
    SELECT 'resumed', %(by)b::text, %(reason)b::text,
           jsonb_build_object('stopped', true, 'since', since, 'by', by, 'reason', reason), '{"stopped": false}'
      FROM was
)
SELECT since, by, reason, true AS new FROM was
"""

# The hold after a restore takes precedence over a person's stop.
_HALTED = "SELECT since, by, reason, false AS new, id = 2 AS restored FROM redrive_global_stop ORDER BY id DESC LIMIT 1"


def stop(dlq: int | None, *, by: str, reason: str) -> Stop:
    """Stop all sends of this DLQ (None: of all DLQs); return by whom they are stopped, and why.

    If the sends are stopped already, nothing is changed, and `new` is false in the result.
    """
    found = rows.first(Stop, _HALT if dlq is None else _STOP, {"id": dlq, "by": by, "reason": reason})
    if found is None:
        raise DeadLetterQueue.DoesNotExist(f"no DLQ has the id {dlq}")
    return found


def resume(dlq: int | None, *, by: str, reason: str, seen: datetime | None = None) -> Stop | None:
    """Resume the sends of this DLQ (None: of all DLQs). Return who had stopped them, or None if they were not stopped.

    If all DLQs and one DLQ were stopped, each of the two must be resumed. `seen`: resume only if the sends were stopped
    at this time, which the person saw; None: in any case.

    Raises:
        RestoreUnresolved: all DLQs shall be resumed, but their sends are held after a restore from a backup.
    """
    if dlq is None:
        refuse_while_held()
    values = {"id": dlq, "by": by, "reason": reason, "seen": seen}
    return rows.first(Stop, _RESUME_ALL if dlq is None else _RESUME, values)


def stop_of(dlq: int | None) -> Stop | None:
    """Return who stopped the sends of this DLQ; None: they are not stopped, or only together with those of all DLQs.

    `dlq` None: return who stopped the sends of all DLQs, or that they are held after a restore from a backup.
    """
    return rows.first(Stop, _HALTED if dlq is None else _STOPPED_ROW.format(table="redrive_dlq"), {"id": dlq})


def describe_stop(dlq: DeadLetterQueue) -> str:
    """Return a sentence about who stopped the sends of this DLQ or of all DLQs, and why; empty: nobody did."""
    for stop, what in ((stop_of(None), "Everything"), (stop_of(dlq.pk), dlq.name)):
        if stop:
            return f'{what} is stopped by {stop.by} ("{stop.reason}"): nothing is sent until somebody resumes it.'
    return ""


def refuse_while_held() -> None:
    """Raise RestoreUnresolved if all sends are held since PostgreSQL was restored from a backup."""
    held = stop_of(None)
    if held and held.restored:
        raise RestoreUnresolved(
            f'Everything is held since {held.since:%Y-%m-%d %H:%M:%S} UTC by {held.by} ("{held.reason}"): PostgreSQL '
            "was restored from a backup and does not know what was sent since. Nothing was done. Run "
            "manage.py after_restore report. Then decide (after_restore resolve) and end it (after_restore release)."
        )


def stop_lane(lane: int, *, by: str, reason: str) -> Stop:
    """Stop all sends of this lane; return by whom they are stopped, and why.

    If the lane is stopped already, nothing is changed, and `new` is false in the result.
    """
    found = rows.first(Stop, _STOP_LANE, {"id": lane, "by": by, "reason": reason})
    if found is None:
        raise Lane.DoesNotExist(f"no lane has the id {lane}")
    return found


def resume_lane(lane: int, *, by: str, reason: str, seen: datetime | None = None) -> Stop | None:
    """Resume the sends of this lane; return who had stopped them, or None if they were not stopped.

    `seen`: resume only if the lane was stopped at this time, which the person saw; None: in any case.
    """
    return rows.first(Stop, _RESUME_LANE, {"id": lane, "by": by, "reason": reason, "seen": seen})


def stop_of_lane(lane: int) -> Stop | None:
    """Return who stopped the sends of this lane alone; None: the lane itself is not stopped, but its DLQ may be."""
    return rows.first(Stop, _STOPPED_ROW.format(table="redrive_lane"), {"id": lane})
