"""The hold after a restore from a backup: nothing is sent until a person has decided about each unfinished letter.

The restored database does not know what was sent, captured, finished or returned after the backup was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from reprocessing.domain.errors import RestoreUnresolved
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import RESTORE
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import announce, conclude

#: SQS hides a message for 12 hours at most. After this time, all messages that were invisible when the hold began are
#: visible.
MAX_VISIBILITY: Final = timedelta(hours=12)
_INCIDENT: Final = (EventKind.RESTORE_DETECTED, RESTORE)


@dataclass(frozen=True, slots=True)
class RestoreHold:
    """The hold after a restore: since when, by whom and why nothing is sent. `restored_to`: the time of the backup.

    `new`: the function that returned this object has just begun, or ended, the hold.
    """

    since: datetime
    by: str
    reason: str
    restored_to: datetime
    new: bool

    @property
    def in_sight_at(self) -> datetime:
        """Return when every message that was invisible before the hold is visible again: 12 hours after it began."""
        return self.since + MAX_VISIBILITY


_SELECT_HOLD = "SELECT since, by, reason, restored_to, false AS new FROM redrive_global_stop WHERE id = 2"

# A new restore replaces the hold of an earlier restore.
_BEGIN = """
WITH held AS (
    INSERT INTO redrive_global_stop AS h (id, since, by, reason, restored_to)
    VALUES (2, redrive_now(), %(by)b::text, %(reason)b::text, %(restored_to)b::timestamptz)
    ON CONFLICT (id) DO UPDATE
       SET since = excluded.since, by = excluded.by, reason = excluded.reason, restored_to = excluded.restored_to
     WHERE %(anew)b::bool
    RETURNING since, by, reason, restored_to
), noted AS (
    INSERT INTO redrive_audit_entry (act, by, reason, before, after)
    SELECT 'stopped', held.by, held.reason,
           CASE WHEN was.id IS NULL THEN '{"held": false}'
                ELSE jsonb_build_object('held', true, 'since', was.since, 'by', was.by, 'reason', was.reason,
                                        'restored_to', was.restored_to) END,
           jsonb_build_object('held', true, 'restored_to', held.restored_to)
      FROM held LEFT JOIN redrive_global_stop was ON was.id = 2
)
SELECT since, by, reason, restored_to, true AS new FROM held
"""

# Deletes the rows of an earlier restore. Letters that still need a decision get a new row.
_FORGET = "DELETE FROM redrive_restore_doubt"

_DOUBT = """
INSERT INTO redrive_restore_doubt (letter_id, receives)
SELECT l.id, c.receives
  FROM redrive_letter l
  LEFT JOIN redrive_dlq_copy c ON c.dlq_id = l.dlq_id AND c.message_id = l.message_id AND c.attempt_id IS NULL
        AND c.state = 'held'
 WHERE l.finished_at IS NULL
"""

# Letters captured since the hold whose messages were in the DLQ before: these messages may already have been captured
# and sent after the backup.
_DOUBT_ARRIVED = """
INSERT INTO redrive_restore_doubt (letter_id, arrived)
SELECT l.id, true FROM redrive_letter l JOIN redrive_global_stop h ON h.id = 2
 WHERE l.finished_at IS NULL AND l.captured_at >= h.since AND l.first_sent_at < h.since
ON CONFLICT (letter_id) DO NOTHING
"""

# Ids rise with time, but a concurrent transaction may take its id a moment earlier. So the newest attempt that began a
# minute before the backup is searched backward, and only attempts after it are read. BETWEEN, because the planner
# expects that a > with an unknown value is true of a third of all attempts.
_SENT_SINCE = """
SELECT count(*) AS n FROM redrive_attempt
 WHERE opened_at > %(restored_to)b::timestamptz
   AND id BETWEEN coalesce((SELECT id FROM redrive_attempt
                             WHERE opened_at <= %(restored_to)b::timestamptz - interval '1 minute'
                             ORDER BY id DESC LIMIT 1), 0) AND 9223372036854775807
"""

_UNFINISHED = "SELECT count(*) AS n FROM redrive_letter WHERE finished_at IS NULL"

_OPEN = """
SELECT count(*) AS n FROM redrive_restore_doubt x JOIN redrive_letter l ON l.id = x.letter_id
 WHERE x.word = '' AND l.finished_at IS NULL
"""

# DLQs that no capture has emptied since the messages that were invisible when the hold began became visible again.
_UNDRAINED = """
SELECT d.name FROM redrive_dlq d JOIN redrive_global_stop h ON h.id = 2
 WHERE d.mode <> 'observe' AND coalesce(d.drained_through < h.since + %(hidden)b::interval, true)
 ORDER BY d.name
"""

_END = """
WITH was AS (
    DELETE FROM redrive_global_stop WHERE id = 2 RETURNING since, by, reason, restored_to
), noted AS (
    INSERT INTO redrive_audit_entry (act, by, reason, before, after)
    SELECT 'resumed', %(by)b::text, %(reason)b::text,
           jsonb_build_object('held', true, 'since', since, 'by', by, 'reason', reason, 'restored_to', restored_to),
           '{"held": false}'
      FROM was
)
SELECT since, by, reason, restored_to, true AS new FROM was
"""

# Deletes task hints of the backup, so that lanes need not wait until the hints expire. Ready and leased lanes have
# hints; each phase has an index.
_HINTS = """
UPDATE redrive_lane SET hinted_until = NULL
 WHERE id = ANY (ARRAY (
       SELECT id FROM redrive_lane WHERE phase = 'ready' AND hinted_until > (SELECT redrive_now())
        UNION ALL
       SELECT id FROM redrive_lane WHERE phase = 'leased' AND hinted_until > (SELECT redrive_now())))
"""

_LOCK = f"{_SELECT_HOLD} FOR UPDATE"


def current_hold() -> RestoreHold | None:
    """Return the present hold after a restore; None: there is none."""
    return rows.first(RestoreHold, _SELECT_HOLD, {})


def begin_hold(restored_to: datetime, *, by: str, reason: str, anew: bool = False) -> RestoreHold:
    """Stop all sends, and require a decision about every unfinished letter; return the hold, which may exist already.

    `restored_to`: the time of the backup. `anew`: the database was restored again, so the hold begins again and earlier
    decisions are deleted.
    """
    values = {"restored_to": restored_to, "by": by, "reason": reason, "anew": anew}

    def work() -> RestoreHold:
        found = rows.fetch(RestoreHold, _BEGIN, values)
        if not found:  # a second statement sees what was committed during the wait
            return rows.fetch(RestoreHold, _SELECT_HOLD, {})[0]
        rows.execute(_FORGET, {})
        doubted = rows.execute(_DOUBT, {})
        conclude([_INCIDENT])  # an earlier restore's incident, which the backup may contain
        backup_time = f"{found[0].restored_to:%Y-%m-%d %H:%M:%S} UTC"
        announce([Event(EventKind.RESTORE_DETECTED, RESTORE, {"backup_time": backup_time, "messages": doubted})])
        return found[0]

    return rows.in_transaction(work)


def doubt_newly_captured() -> int:
    """Require a decision about letters captured since the hold began, but first sent before it; return how many.

    Between the backup and the restore, these messages may have been captured and redriven already.
    """
    return rows.execute(_DOUBT_ARRIVED, {})


def count_unfinished() -> int:
    """Return how many letters are unfinished. A hold requires a decision about each of them."""
    return rows.value(int, _UNFINISHED, {})


def count_attempts_since(restored_to: datetime) -> int:
    """Return how many attempts began after the time of the backup.

    If there are any, the service has sent messages since the restore.
    """
    return rows.value(int, _SENT_SINCE, {"restored_to": restored_to})


def count_undecided() -> int:
    """Return how many unfinished letters still need a decision."""
    return rows.value(int, _OPEN, {})


def undrained_dlqs() -> list[str]:
    """Return the names of DLQs that no capture has emptied since 12 hours after the hold began.

    Twelve hours after the hold began, every message that was invisible at its beginning is visible again.
    """
    return rows.column(str, _UNDRAINED, {"hidden": MAX_VISIBILITY})


def refuse_release(*, early: bool) -> None:
    """Raise an error if the hold after a restore cannot be ended. `early`: do not check `undrained_dlqs`.

    Raises:
        RestoreUnresolved: letters still need a decision, or there are `undrained_dlqs`.
    """
    doubt_newly_captured()
    if left := count_undecided():
        what = "message is" if left == 1 else "messages are"
        raise RestoreUnresolved(
            f"Nothing was done: {left:,} {what} undecided. List them: manage.py after_restore report"
        )
    if not early and (names := undrained_dlqs()):
        raise RestoreUnresolved(
            f"Nothing was done: not all hidden messages are visible yet in {', '.join(names)}. Messages that appear "
            "later count as new, although they may have been sent since the backup. Wait for a capture that begins 12 "
            "hours after the hold, or add --early; then such messages may be sent twice."
        )


def end_hold(*, by: str, reason: str, early: bool) -> RestoreHold | None:
    """End the hold after a restore, and return the hold; None: there is none. `early`: do not check `undrained_dlqs`.

    Raises:
        RestoreUnresolved: letters still need a decision, or there are `undrained_dlqs`.
    """
    return rows.in_transaction(partial(_end, by, reason, early))


def _end(by: str, reason: str, early: bool) -> RestoreHold | None:  # noqa: FBT001  # as `end_hold` has it
    if not rows.fetch(RestoreHold, _LOCK, {}):
        return None
    refuse_release(early=early)
    found = rows.fetch(RestoreHold, _END, {"by": by, "reason": reason})
    rows.execute(_FORGET, {})
    rows.execute(_HINTS, {})
    conclude([_INCIDENT])
    return found[0] if found else None
