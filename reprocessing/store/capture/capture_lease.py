"""The statements around a capture: who captures a dlq, what it holds there, what was drained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reprocessing.models.system import UNSEEN
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.replay.settlement import Deletable


@dataclass(frozen=True, slots=True)
class Capturing:
    """A dlq that is ours to capture until its lease runs out.

    `clean`: a drained end will count as evidence. Else a capture before this one died, and until `unclean_until` what
    it had received may be out of sight.
    """

    dlq_id: int
    fence: int
    began_at: datetime
    clean: bool
    unclean_until: datetime | None


@dataclass(frozen=True, slots=True)
class Renewed:
    """A lease that goes on. `at`: the moment; `has_let_go`: letters of the dlq may be marked as moved by AWS."""

    at: datetime
    has_let_go: bool


_LEASE = """
UPDATE redrive_dlq d
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8), fence = nextval('redrive_fence'),
       unclean_until = greatest(d.unclean_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
  FROM (SELECT id, unclean_until, coalesce(unclean_until <= redrive_now(), true) AS clean FROM redrive_dlq
         WHERE id = %(dlq)b AND mode <> 'observe' AND coalesce(leased_until <= redrive_now(), true)
           AND native_at IS NULL FOR NO KEY UPDATE SKIP LOCKED) free
 WHERE d.id = free.id
RETURNING d.id AS dlq_id, d.fence, redrive_now() AS began_at, free.clean, free.unclean_until
"""

_RENEW = """
UPDATE redrive_dlq
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8),
       unclean_until = greatest(unclean_until, redrive_now() + make_interval(secs => %(dirty)b::float8))
 WHERE id = %(dlq)b AND fence = %(fence)b
RETURNING redrive_now() AS at, let_go_at IS NOT NULL AS has_let_go
"""

# A clean end: every copy that was received is committed. Only a start that was clean, too, proves anything; what an
# earlier capture left out of sight stays so.
_END = """
UPDATE redrive_dlq
   SET leased_until = NULL, trouble = %(trouble)b::text,
       unclean_until = CASE WHEN %(clean)b::bool THEN %(before)b::timestamptz ELSE unclean_until END,
       drained_through = CASE WHEN %(drained)b::bool THEN greatest(drained_through, %(began)b::timestamptz)
                              ELSE drained_through END
 WHERE id = %(dlq)b AND fence = %(fence)b
RETURNING coalesce((SELECT max(l.id) FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND l.state = 'captured'), 0) AS n
"""

_HELD = "SELECT count(*) AS n FROM redrive_custody WHERE dlq_id = %(dlq)b AND state = 'held'"

# What was deleted a moment ago may still be counted by SQS as in flight. What has come to sight again is not: whoever
# counts it excuses another reader, who may hide a return. What is held may be hidden for longer than is known here:
# that is for SQS to say (see `to_extend`). What a backup says is held proves nothing until it was seen again.
_OUT_OF_SIGHT = f"""
SELECT (SELECT count(*) FROM redrive_custody c
         WHERE dlq_id = %(dlq)b AND state = 'held' AND visible_until > redrive_now() AND NOT {UNSEEN})
     + (SELECT count(*) FROM redrive_custody
         WHERE dlq_id = %(dlq)b AND state = 'delete'
           AND visible_until > redrive_now() - make_interval(secs => %(count_lag)b::float8))
     + (SELECT count(*) FROM redrive_custody
         WHERE dlq_id = %(dlq)b AND state = 'gone'
           AND gone_at > redrive_now() - make_interval(secs => %(count_lag)b::float8)) AS n
"""  # noqa: S608  # the inserted text is a constant

# A copy may be out of sight for longer than is known here, and its handle good: SQS was asked to hide it, and the
# answer was lost. A FIFO queue refuses a handle that is past its time; a standard one says yes, and a copy that is
# there nevertheless is received again.
_TO_DELETE = """
SELECT c.dlq_id, c.message_id, c.handle FROM redrive_custody c JOIN redrive_dlq d ON d.id = c.dlq_id
 WHERE c.dlq_id = %(dlq)b AND c.state = 'delete' AND (c.visible_until > redrive_now() OR NOT d.fifo) LIMIT %(limit)b
"""

# In words that no partial index answers to: the planner would read all copies that were to be deleted, the dead too.
_GONE = """
UPDATE redrive_custody c SET state = 'gone', gone_at = redrive_now()
  FROM unnest(%(dlqs)b::bigint[], %(ids)b::text[], %(handles)b::text[]) AS g(dlq_id, message_id, handle)
 WHERE c.dlq_id = g.dlq_id AND c.message_id = g.message_id
   AND c.handle = g.handle AND c.state || '' NOT IN ('held', 'gone')
"""

# Letters of a run that runs, or will go on, whose copy has used up two thirds of its time out of sight; once each. Or
# whose copy is in sight again, unless SQS was asked to hide it by somebody who did not live to note that. What is asked
# of the letter is asked for each copy found: joined, the planner might read all copies for each letter.
_TO_EXTEND = f"""
SELECT c.dlq_id, c.message_id, c.handle FROM redrive_custody c
 WHERE c.dlq_id = %(dlq)b AND c.state = 'held' AND NOT c.extended
   AND c.visible_until BETWEEN (SELECT redrive_now() - make_interval(secs => %(since)b::float8))
                           AND (SELECT redrive_now() + make_interval(secs => %(within)b::float8))
   AND (SELECT l.state IN ('waiting', 'sending', 'awaiting') AND r.state IN ('running', 'paused')
          FROM redrive_letter l JOIN redrive_run r ON r.id = l.run_id WHERE l.id = c.letter_id)
   AND NOT {UNSEEN}
 LIMIT %(limit)b
"""  # noqa: S608  # the inserted text is a constant

_EXTENDED = """
UPDATE redrive_custody c SET extended = true, visible_until = %(until)b::timestamptz
  FROM unnest(%(ids)b::text[], %(handles)b::text[]) AS g(message_id, handle)
 WHERE c.dlq_id = %(dlq)b AND c.message_id = g.message_id AND c.handle = g.handle AND c.state NOT IN ('delete', 'gone')
"""

# Whose letters ended in a way that left the copy behind (a lost worker's last attempt, say). Of many copies each sweep
# looks at some, in the order in which they come to sight, and the next one goes on behind them.
_SWEEP = """
WITH held AS MATERIALIZED (
    SELECT c.message_id, c.letter_id, c.visible_until FROM redrive_custody c
     WHERE c.dlq_id = %(dlq)b AND c.state = 'held'
       AND c.visible_until > (SELECT coalesce(swept_through, '-infinity') FROM redrive_dlq WHERE id = %(dlq)b)
     ORDER BY c.visible_until FETCH FIRST %(limit)b ROWS WITH TIES
), noted AS (
    UPDATE redrive_dlq d SET swept_through = s.through
      FROM (SELECT CASE WHEN count(*) >= %(limit)b THEN max(visible_until) END AS through FROM held) s
     WHERE d.id = %(dlq)b AND d.swept_through IS DISTINCT FROM s.through
)
UPDATE redrive_custody c SET state = 'delete'
 WHERE c.dlq_id = %(dlq)b AND c.state || '' = 'held' AND c.message_id = ANY (ARRAY (
       SELECT h.message_id FROM held h
        WHERE (SELECT l.state FROM redrive_letter l WHERE l.id = h.letter_id)
              IN ('delivered', 'parked', 'duplicate', 'discarded')))
"""


def lease(dlq: int, *, lease: float, dirty: float) -> Capturing | None:
    """Take the dlq for a capture; None while another captures it, AWS moves its messages, or it is only observed.

    Args:
        dlq: its id.
        lease: seconds.
        dirty: seconds for which, should this capture die, nothing counts as drained: what it received is out of sight.
    """
    found = rows.fetch(Capturing, _LEASE, {"dlq": dlq, "lease": lease, "dirty": dirty})
    return found[0] if found else None


def renew(capturing: Capturing, *, lease: float, dirty: float) -> Renewed | None:
    """Lengthen the lease, from the moment that is told; None when the dlq is another's by now."""
    values = {"dlq": capturing.dlq_id, "fence": capturing.fence, "lease": lease, "dirty": dirty}
    found = rows.fetch(Renewed, _RENEW, values)
    return found[0] if found else None


def end(capturing: Capturing, *, clean: bool, drained: bool, trouble: str = "") -> int | None:
    """Give the dlq back, and tell its newest captured letter by id (0: none): later ones are of later captures.

    None when it was another's by then, and nothing of this counts.

    `clean`: all that was received is committed. `drained`: and nothing that the dlq held at the beginning is missing.
    """
    values = {
        "dlq": capturing.dlq_id,
        "fence": capturing.fence,
        "clean": clean,
        "before": capturing.unclean_until,
        "drained": drained and clean and capturing.clean,
        "began": capturing.began_at,
        "trouble": trouble,
    }
    found = rows.column(int, _END, values)
    return found[0] if found else None


def held(dlq: int) -> int:
    """How many copies are held out of sight in this dlq."""
    return rows.value(int, _HELD, {"dlq": dlq})


def out_of_sight(dlq: int, *, count_lag: float) -> int:
    """How many messages in flight in this dlq are ours, by what is known here: none that has come to sight again.

    `count_lag`: seconds for which SQS's counts may still hold what was deleted.
    """
    return rows.value(int, _OUT_OF_SIGHT, {"dlq": dlq, "count_lag": count_lag})


def to_delete(dlq: int, *, limit: int) -> list[Deletable]:
    """Copies to be deleted whose handle may still be good."""
    return rows.fetch(Deletable, _TO_DELETE, {"dlq": dlq, "limit": limit})


def gone(copies: Sequence[Deletable]) -> None:
    """Remember that these copies were deleted, but for those received again since: by an older handle nothing is."""
    values = {
        "dlqs": [copy.dlq_id for copy in copies],
        "ids": [copy.message_id for copy in copies],
        "handles": [copy.handle for copy in copies],
    }
    rows.execute(_GONE, values)


def to_extend(dlq: int, *, within: float, limit: int, since: float = 0.0) -> list[Deletable]:
    """Held copies of letters under way that come to sight within so many seconds.

    `since`: or whose time is over, by what is known here, for so many at most; they were never extended, as far as
    that is known.
    """
    return rows.fetch(Deletable, _TO_EXTEND, {"dlq": dlq, "within": within, "limit": limit, "since": since})


def extended(dlq: int, copies: Sequence[Deletable], *, until: datetime) -> None:
    """Remember that these copies stay out of sight until then, but for those that were received again since."""
    values = {"dlq": dlq, "ids": [one.message_id for one in copies], "handles": [one.handle for one in copies]}
    rows.execute(_EXTENDED, {**values, "until": until})


def sweep(dlq: int, *, limit: int) -> int:
    """Mark for deletion the copies whose letters are finished, among the next `limit` that are held; how many."""
    return rows.execute(_SWEEP, {"dlq": dlq, "limit": limit})


_DEPTH = """
UPDATE redrive_dlq
   SET depth_visible = %(visible)b, depth_in_flight = %(in_flight)b, depth_at = redrive_now(),
       trouble = CASE WHEN starts_with(trouble, %(native)b::text) THEN trouble ELSE '' END
 WHERE id = %(dlq)b
"""

_TROUBLE = """
UPDATE redrive_dlq SET trouble = %(trouble)b WHERE id = %(dlq)b AND NOT starts_with(trouble, %(native)b::text)
"""


def note_depth(dlq: int, *, visible: int, in_flight: int) -> None:
    """Remember how many messages the dlq was said to hold, and when; it could be asked, so trouble is over.

    But for what AWS's own redrive left: the next capture ends that, or the next such redrive.
    """
    rows.execute(_DEPTH, {"dlq": dlq, "visible": visible, "in_flight": in_flight, "native": aws_redrives.TROUBLE})


def note_trouble(dlq: int, trouble: str) -> None:
    """Remember why the dlq could not be asked."""
    rows.execute(_TROUBLE, {"dlq": dlq, "trouble": trouble, "native": aws_redrives.TROUBLE})
