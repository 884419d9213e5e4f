"""Lease a DLQ for a capture, track the captured messages in the DLQ, and record when a capture emptied the DLQ.

A capture receives the messages of a DLQ and stores them as letters. A copy is a letter's message that is still in the
DLQ. A fence is a number that rises with every lease. A statement with an older fence changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models.system import COPY_IS_UNSEEN
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.replay.settlement import Deletable


@dataclass(frozen=True, slots=True)
class CaptureLease:
    """A DLQ that is leased for a capture."""

    dlq_id: int
    fence: int
    began_at: datetime
    clean: bool  #: no message is invisible because of an earlier, killed capture, so this capture sees all messages
    orphans_hidden_until: datetime | None  #: until then, messages that a killed capture received may be invisible


@dataclass(frozen=True, slots=True)
class RenewedLease:
    """A lease that was renewed at the time `at`. `may_have_moved`: AWS's redrive may have moved the DLQ's messages."""

    at: datetime
    may_have_moved: bool


_LEASE = """
UPDATE redrive_dlq d
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8), fence = nextval('redrive_fence'),
       orphans_hidden_until = greatest(d.orphans_hidden_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
  FROM (SELECT id, orphans_hidden_until, coalesce(orphans_hidden_until <= redrive_now(), true) AS clean FROM redrive_dlq
         WHERE id = %(dlq)b AND mode <> 'observe' AND coalesce(leased_until <= redrive_now(), true)
           AND aws_redrive_since IS NULL FOR NO KEY UPDATE SKIP LOCKED) free
 WHERE d.id = free.id
RETURNING d.id AS dlq_id, d.fence, redrive_now() AS began_at, free.clean, free.orphans_hidden_until
"""

_RENEW = """
UPDATE redrive_dlq
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8),
       orphans_hidden_until = greatest(orphans_hidden_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
 WHERE id = %(dlq)b AND fence = %(fence)b
RETURNING redrive_now() AS at, aws_may_have_moved_at IS NOT NULL AS may_have_moved
"""

# After a clean end, every received copy is committed. Messages that an earlier, killed capture received may still be
# invisible, so the time until which they may be (`before`) is written again.
_END = """
UPDATE redrive_dlq
   SET leased_until = NULL, last_error = %(last_error)b::text,
       orphans_hidden_until = CASE WHEN %(clean)b::bool THEN %(before)b::timestamptz ELSE orphans_hidden_until END,
       drained_through = CASE WHEN %(drained)b::bool THEN greatest(drained_through, %(began)b::timestamptz)
                              ELSE drained_through END
 WHERE id = %(dlq)b AND fence = %(fence)b
RETURNING coalesce((SELECT max(l.id) FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND l.state = 'captured'), 0) AS n
"""

# The count is compared with SQS's count of messages in flight, to notice another reader. SQS may count a deleted
# message as in flight for `count_lag` seconds more. A copy that is visible again is not counted: another reader may
# have received it. A copy known only from a backup (`COPY_IS_UNSEEN`) is counted after it was received again.
# The clock is a subquery, so that indexes are read only from that time on. Without `BETWEEN`, the planner may choose to
# read all copies of the history.
_LAG: Final[LiteralString] = "make_interval(secs => %(count_lag)b::float8)"
_OUT_OF_SIGHT = f"""
SELECT (SELECT count(*) FROM redrive_dlq_copy c
         WHERE dlq_id = %(dlq)b AND state = 'held' AND visible_until > (SELECT redrive_now()) AND NOT {COPY_IS_UNSEEN})
     + (SELECT count(*) FROM redrive_dlq_copy WHERE dlq_id = %(dlq)b AND state = 'delete'
                                               AND visible_until > (SELECT redrive_now()) - {_LAG})
     + (SELECT count(*) FROM redrive_dlq_copy WHERE dlq_id = %(dlq)b AND state = 'gone'
                                               AND gone_at BETWEEN (SELECT redrive_now()) - {_LAG} AND 'infinity') AS n
"""  # noqa: S608  # the inserted text is a constant

# Copies to delete. A FIFO queue rejects an expired handle, so its copies are left out when the handle has expired. A
# standard queue accepts the request: the handle may be valid for longer than recorded, because the answer to a
# visibility change was lost. A copy that stays in the DLQ is received again.
_TO_DELETE = """
SELECT dlq_id, message_id, handle FROM redrive_dlq_copy
 WHERE dlq_id = %(dlq)b AND state = 'delete'
   AND message_id > (SELECT coalesce(%(above)b::text, md5(redrive_now()::text)))
   AND (visible_until > redrive_now() OR NOT (SELECT fifo FROM redrive_dlq WHERE id = %(dlq)b))
 ORDER BY message_id LIMIT %(limit)b
"""

# `state || ''` keeps the planner from a partial index, which would read every copy that is to be deleted.
_GONE = """
UPDATE redrive_dlq_copy c SET state = 'gone', gone_at = redrive_now()
  FROM unnest(%(dlq_id)b::bigint[], %(message_id)b::text[], %(handle)b::text[]) AS g(dlq_id, message_id, handle)
 WHERE c.dlq_id = g.dlq_id AND c.message_id = g.message_id
   AND c.handle = g.handle AND c.state || '' <> 'gone'
"""

# Copies of letters of unfinished runs that become visible soon, or are visible already. Each copy is extended once. A
# visible copy is left out if a killed worker may have extended it (`COPY_IS_UNSEEN`). The letter's state is a subquery:
# with a join, the planner might read all copies for each letter.
_TO_EXTEND = f"""
SELECT c.dlq_id, c.message_id, c.handle FROM redrive_dlq_copy c
 WHERE c.dlq_id = %(dlq)b AND c.state = 'held' AND NOT c.extended
   AND c.visible_until BETWEEN (SELECT redrive_now() - make_interval(secs => %(since)b::float8))
                           AND (SELECT redrive_now() + make_interval(secs => %(within)b::float8))
   AND (SELECT l.state IN ('waiting', 'sending', 'awaiting') AND r.state IN ('running', 'paused')
          FROM redrive_letter l JOIN redrive_run r ON r.id = l.run_id WHERE l.id = c.letter_id)
   AND NOT {COPY_IS_UNSEEN}
 LIMIT %(limit)b
"""  # noqa: S608  # the inserted text is a constant

_EXTENDED = """
UPDATE redrive_dlq_copy c SET extended = true, visible_until = %(until)b::timestamptz
  FROM unnest(%(message_id)b::text[], %(handle)b::text[]) AS g(message_id, handle)
 WHERE c.dlq_id = %(dlq)b AND c.message_id = g.message_id AND c.handle = g.handle AND c.state NOT IN ('delete', 'gone')
"""

# Copies whose letter is finished, for example after a killed worker's last attempt. Each sweep reads `limit` copies in
# the order in which they become visible; the next sweep continues after them.
_SWEEP = """
WITH held AS MATERIALIZED (
    SELECT c.message_id, c.letter_id, c.visible_until FROM redrive_dlq_copy c
     WHERE c.dlq_id = %(dlq)b AND c.state = 'held'
       AND c.visible_until > (SELECT coalesce(swept_through, '-infinity') FROM redrive_dlq WHERE id = %(dlq)b)
     ORDER BY c.visible_until FETCH FIRST %(limit)b ROWS WITH TIES
), noted AS (
    UPDATE redrive_dlq d SET swept_through = s.through
      FROM (SELECT CASE WHEN count(*) >= %(limit)b THEN max(visible_until) END AS through FROM held) s
     WHERE d.id = %(dlq)b AND d.swept_through IS DISTINCT FROM s.through
)
UPDATE redrive_dlq_copy c SET state = 'delete'
 WHERE c.dlq_id = %(dlq)b AND c.state || '' = 'held' AND c.message_id = ANY (ARRAY (
       SELECT h.message_id FROM held h
        WHERE (SELECT l.state FROM redrive_letter l WHERE l.id = h.letter_id)
              IN ('delivered', 'parked', 'duplicate', 'discarded')))
"""


def lease(dlq: int, *, lease: float, dirty: float) -> CaptureLease | None:
    """Lease the DLQ for a capture, for `lease` seconds; None if it is leased, in mode observe, or redriven by AWS.

    `dirty`: seconds for which messages that this capture receives may stay invisible if its worker is killed. In this
    time, no later capture is recorded as having emptied the DLQ, because it cannot receive invisible messages.
    """
    return rows.first(CaptureLease, _LEASE, {"dlq": dlq, "lease": lease, "dirty": dirty})


def renew(capturing: CaptureLease, *, lease: float, dirty: float) -> RenewedLease | None:
    """Renew the lease of a capture for `lease` seconds; None if another capture has leased the DLQ.

    `dirty`: seconds for which messages that this capture receives may stay invisible if its worker is killed.
    """
    values = {"dlq": capturing.dlq_id, "fence": capturing.fence, "lease": lease, "dirty": dirty}
    return rows.first(RenewedLease, _RENEW, values)


def end(capturing: CaptureLease, *, clean: bool, drained: bool, last_error: str = "") -> int | None:
    """End a capture's lease; return the id of the DLQ's newest letter in state captured; None if the lease is lost.

    The id is 0 if no letter is in this state. `clean`: every received message is stored, and committed. `drained`:
    every message that was in the DLQ at the start was received. `last_error`: why the capture failed, for people;
    empty: it succeeded.
    """
    values = {
        "dlq": capturing.dlq_id,
        "fence": capturing.fence,
        "clean": clean,
        "before": capturing.orphans_hidden_until,
        "drained": drained and clean and capturing.clean,
        "began": capturing.began_at,
        "last_error": last_error,
    }
    return next(iter(rows.column(int, _END, values)), None)


def count_held(dlq: int) -> int:
    """Return how many captured messages stay in this DLQ until their letters are finished."""
    statement = "SELECT count(*) AS n FROM redrive_dlq_copy WHERE dlq_id = %(dlq)b AND state = 'held'"
    return rows.value(int, statement, {"dlq": dlq})


def count_invisible(dlq: int, *, count_lag: float) -> int:
    """Return how many messages of this DLQ are in flight because this service received them.

    `count_lag`: seconds for which SQS may still count a deleted message as in flight.
    """
    return rows.value(int, _OUT_OF_SIGHT, {"dlq": dlq, "count_lag": count_lag})


def copies_to_delete(dlq: int, *, above: str | None, limit: int) -> list[Deletable]:
    """Return up to `limit` messages to delete from the DLQ, whose receipt handles may still be valid.

    The messages are sorted by message id; their ids are greater than `above`. None: begin at an id that depends on the
    time of the call.
    """
    return rows.fetch(Deletable, _TO_DELETE, {"dlq": dlq, "above": above, "limit": limit})


def mark_gone(copies: Sequence[Deletable]) -> None:
    """Record that these messages were deleted from their DLQ. A message that was received again is not changed."""
    rows.execute(_GONE, rows.arrays(Deletable, copies))


def copies_to_extend(dlq: int, *, within: float, limit: int, since: float = 0.0) -> list[Deletable]:
    """Return up to `limit` messages whose visibility timeout must be extended, since their letters are still in a run.

    These messages become visible within `within` seconds, or became visible at most `since` seconds ago.
    """
    return rows.fetch(Deletable, _TO_EXTEND, {"dlq": dlq, "within": within, "limit": limit, "since": since})


def mark_extended(dlq: int, copies: Sequence[Deletable], *, until: datetime) -> None:
    """Record that SQS keeps these messages invisible until `until`. Messages received again are not changed."""
    rows.execute(_EXTENDED, {**rows.arrays(Deletable, copies), "dlq": dlq, "until": until})


def mark_finished_copies(dlq: int, *, limit: int) -> int:
    """Mark messages of finished letters for deletion from the DLQ; return how many were marked.

    Each call checks the next `limit` of the captured messages that are kept in the DLQ.
    """
    return rows.execute(_SWEEP, {"dlq": dlq, "limit": limit})


# In mode automatic, a DLQ with messages is captured next: the capture clears the error text if it succeeds. After a
# capture that failed, messages may be invisible.
_DEPTH = """
UPDATE redrive_dlq
   SET depth_visible = %(visible)b, depth_in_flight = %(in_flight)b, depth_at = redrive_now(),
       last_error = CASE WHEN starts_with(last_error, %(native)b::text)
                           OR (mode = 'automatic' AND stopped_at IS NULL AND aws_redrive_since IS NULL
                               AND (%(visible)b::bigint > 0 OR orphans_hidden_until > redrive_now()))
                         THEN last_error ELSE '' END
 WHERE id = %(dlq)b
"""

_NOTE_ERROR = """
UPDATE redrive_dlq SET last_error = %(last_error)b WHERE id = %(dlq)b AND NOT starts_with(last_error, %(native)b::text)
"""


def note_depth(dlq: int, *, visible: int, in_flight: int) -> None:
    """Record SQS's message counts of the DLQ. Clear its error text (`last_error`), unless AWS's redrive caused it.

    The text also stays if the DLQ is captured automatically and has messages: only a successful capture clears it then.
    """
    rows.execute(_DEPTH, {"dlq": dlq, "visible": visible, "in_flight": in_flight, "native": aws_redrives.ERROR_PREFIX})


def note_error(dlq: int, last_error: str) -> None:
    """Record as the DLQ's error text why it could not be read, unless the present text is about AWS's redrive."""
    rows.execute(_NOTE_ERROR, {"dlq": dlq, "last_error": last_error, "native": aws_redrives.ERROR_PREFIX})


def unexpected_error(error: Exception) -> str:
    """Return the error text for an exception without a known cause. The exception's own text may quote messages."""
    return f"An unexpected error occurred: {type(error).__name__}. Its traceback is in the log of the workers."
