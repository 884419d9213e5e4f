"""Read the status of all DLQs. The number of statements does not depend on the number of letters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models.dlq import Mode
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs


@dataclass(frozen=True, slots=True)
class DlqStatus:
    """The status of a DLQ.

    Attributes:
        depth_at: when SQS was asked for the counts of visible messages and messages in flight.
        drained_through: when the last capture that emptied the DLQ began.
        captured_until: end of a running capture's lease.
        orphans_hidden_until: until when a crashed capture may have left messages invisible.
        native: a sentence that says since when, and for whom, AWS itself redrives the DLQ; empty: AWS does not.
        last_error: why the last capture, or AWS's redrive, failed.
        held: number of captured messages that stay in the DLQ until their letters are finished.
        to_delete: number of captured messages that are to be deleted from the DLQ.
    """

    id: int
    name: str
    mode: str
    stopped_at: datetime | None
    stopped_by: str
    stop_reason: str
    depth_visible: int | None
    depth_in_flight: int | None
    depth_at: datetime | None
    next_poll_at: datetime | None
    drained_through: datetime | None
    captured_until: datetime | None
    orphans_hidden_until: datetime | None
    native: str
    last_error: str
    fifo: bool
    retention: int
    ordering_key: str
    held: int
    to_delete: int
    every: str | None
    crontab: str | None


@dataclass(frozen=True, slots=True)
class OldestLetter:
    """The time at which the oldest letter of a DLQ in one state was first sent."""

    dlq_id: int
    state: str
    first_sent_at: datetime


# Copies are counted only if %(copies)s is true. Each state has an index of its own: with both states in one condition,
# the planner would read the copies of all finished letters.
_WATCHES = """
SELECT d.id, d.name, d.mode, d.stopped_at, d.stopped_by, d.stop_reason, d.depth_visible, d.depth_in_flight,
       d.depth_at, d.next_poll_at, d.drained_through, CASE WHEN d.aws_redrive_since IS NULL THEN '' ELSE
           'A redrive by AWS has run since ' || to_char(d.aws_redrive_since AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
           || ' UTC, as ' || d.aws_redrive_by || ' asked ("' || d.aws_redrive_reason
           || '"): nothing is captured or sent until it ends.' END AS native,
       concat_ws(' ', nullif(d.last_error, ''), CASE
           WHEN d.aws_redrive_since < redrive_now() - %(longest)b::interval THEN
           %(ours)b::text || 'has run for more than 36 hours, the limit of AWS: cancel it.'
           END) AS last_error,
       CASE WHEN d.orphans_hidden_until > redrive_now() THEN d.orphans_hidden_until END AS orphans_hidden_until,
       CASE WHEN d.leased_until > redrive_now() THEN d.leased_until END AS captured_until,
       d.fifo, d.retention, d.ordering_key, coalesce(c.held, 0) AS held, coalesce(c.to_delete, 0) AS to_delete,
       'every ' || i.every || ' ' || CASE i.every WHEN 1 THEN rtrim(i.period, 's') ELSE i.period END AS every,
       concat_ws(' ', t.minute, t.hour, t.day_of_month, t.month_of_year, t.day_of_week) AS crontab
  FROM redrive_dlq d
  LEFT JOIN django_celery_beat_intervalschedule i ON i.id = d.interval_id
  LEFT JOIN django_celery_beat_crontabschedule t ON t.id = d.crontab_id
  LEFT JOIN LATERAL (
       SELECT (SELECT count(*) FROM redrive_dlq_copy WHERE dlq_id = d.id AND state = 'held') AS held,
              (SELECT count(*) FROM redrive_dlq_copy WHERE dlq_id = d.id AND state = 'delete') AS to_delete) c
         ON %(copies)b::bool
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint)
   AND (%(dlqs)b::bigint[] IS NULL OR d.id = ANY(%(dlqs)b::bigint[]))
 ORDER BY d.name
"""

# Reads one index entry for each state.
_OLDEST: Final[LiteralString] = """
SELECT d.id AS dlq_id, s.state, l.first_sent_at
  FROM redrive_dlq d CROSS JOIN unnest(ARRAY['captured', 'waiting', 'sending', 'awaiting', 'parked']) AS s(state)
 CROSS JOIN LATERAL (
       SELECT first_sent_at FROM redrive_letter l
        WHERE l.dlq_id = d.id AND l.state = s.state AND (l.finished_at IS NULL OR l.state = 'parked')
        ORDER BY first_sent_at LIMIT 1) l
 WHERE %(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint
"""
_OLDEST_OF_DLQS: Final[LiteralString] = f"SELECT dlq_id, min(first_sent_at) AS at FROM ({_OLDEST}) o GROUP BY dlq_id"  # noqa: S608  # a constant

# The first expiry of a held copy of an unfinished letter. Few held copies belong to finished letters: a sweep marks
# them for deletion. The letter is a subquery: with a join, the planner might read all letters.
_EXPIRIES = """
SELECT d.id AS dlq_id, first.at FROM redrive_dlq d
 CROSS JOIN LATERAL (
       SELECT c.expires_at AS at FROM redrive_dlq_copy c
        WHERE c.dlq_id = d.id AND c.state = 'held' AND c.expires_at IS NOT NULL
          AND (SELECT l.finished_at IS NULL FROM redrive_letter l WHERE l.id = c.letter_id)
        ORDER BY c.dlq_id, c.expires_at LIMIT 1) first
 WHERE %(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint
"""

# Copies of captured letters that SQS's count of visible messages includes: they are visible again, or were received
# after SQS was asked, or so shortly before that SQS still counted them as visible. Held copies are counted in two
# ranges of their index, without reading the copies.
_IN_SIGHT = """
SELECT d.id AS dlq_id, sum(ours.n)::bigint AS n
  FROM (SELECT *, depth_at + make_interval(secs => %(visibility)b::float8 - %(count_lag)b::float8) AS newest
          FROM redrive_dlq) d
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM redrive_dlq_copy c
        WHERE c.dlq_id = d.id AND c.state = 'held' AND c.visible_until <= d.depth_at
       UNION ALL
       SELECT count(*) FROM redrive_dlq_copy c
        WHERE c.dlq_id = d.id AND c.state = 'held' AND NOT c.extended
          AND c.visible_until > greatest(d.newest, d.depth_at)
       UNION ALL
       SELECT count(*) FROM redrive_dlq_copy c
        WHERE c.dlq_id = d.id AND c.state = 'delete'
          AND (c.visible_until <= d.depth_at OR (c.visible_until > d.newest AND NOT c.extended))
       UNION ALL
       SELECT count(*) FROM redrive_dlq_copy c
        WHERE c.dlq_id = d.id AND c.state = 'gone' AND c.gone_at BETWEEN d.depth_at AND 'infinity'
          AND (c.visible_until <= d.depth_at OR (c.visible_until > d.newest AND NOT c.extended))) ours
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint)
   AND (d.mode <> 'automatic' OR d.stopped_at IS NOT NULL)
   AND d.depth_visible > 0 AND coalesce(d.drained_through < d.depth_at, true) GROUP BY d.id
"""

_STATES = """
SELECT message_id, state FROM redrive_letter WHERE dlq_id = %(dlq)b AND message_id > %(above)b::text
 ORDER BY message_id LIMIT %(page)b
"""


def dlq_statuses(dlq: int | None = None, *, copies: bool = True, seen: VisibleDlqs = EVERY_DLQ) -> list[DlqStatus]:
    """Return the status of this DLQ (None: of all DLQs in `seen`, which a person may see), sorted by name.

    `copies`: whether to count the captured messages that are still in the DLQ; if false, `held` and `to_delete` are 0.
    """
    values = {
        "dlq": dlq,
        "dlqs": seen.array,
        "copies": copies,
        "longest": aws_redrives.MAX_DURATION,
        "ours": aws_redrives.ERROR_PREFIX,
    }
    return rows.fetch(DlqStatus, _WATCHES, values)


def is_automatic(watch: DlqStatus) -> bool:
    """Return whether beat captures the DLQ's messages without a request: in mode automatic, unless it is stopped."""
    return watch.mode == Mode.AUTOMATIC and watch.stopped_at is None


def uncaptured(watch: DlqStatus, in_sight: int) -> int:
    """Return how many visible messages of a DLQ are not captured.

    `in_sight`: how many of the visible messages are captured. Return 0 during a capture, or if the DLQ is captured
    automatically: a capture takes the other messages. Also return 0 if a capture emptied the DLQ after SQS counted the
    messages.
    """
    asked, drained = watch.depth_at, watch.drained_through
    if is_automatic(watch) or watch.captured_until or (asked and drained and drained >= asked):
        return 0
    return max(0, (watch.depth_visible or 0) - in_sight)


def oldest_letters(dlq: int | None = None) -> list[OldestLetter]:
    """Return, for this DLQ (None: for each DLQ), when the oldest letter in each state was first sent."""
    return rows.fetch(OldestLetter, _OLDEST, {"dlq": dlq})


def oldest_of_dlqs() -> dict[int, datetime]:
    """Return when the oldest letter that is unfinished or parked was first sent, by the DLQ's id."""
    return {row.dlq_id: row.at for row in rows.fetch(_Moment, _OLDEST_OF_DLQS, {"dlq": None})}


@dataclass(frozen=True, slots=True)
class _Moment:
    dlq_id: int
    at: datetime


def expiries(dlq: int | None = None) -> dict[int, datetime]:
    """Return when SQS drops the first message of an unfinished letter, by the DLQ's id. `dlq` None: for all DLQs."""
    return {row.dlq_id: row.at for row in rows.fetch(_Moment, _EXPIRIES, {"dlq": dlq})}


@dataclass(frozen=True, slots=True)
class _InSight:
    dlq_id: int
    n: int


def visible_copies(dlq: int | None = None, *, visibility: float, count_lag: float) -> dict[int, int]:
    """Return how many of the messages that SQS counted as visible in a DLQ are captured, by the DLQ's id.

    `dlq`: only this DLQ; None: all DLQs that are not in mode automatic. `visibility`: visibility timeout of a capture's
    receives (s); `count_lag`: delay of SQS's counts (s).
    """
    found = rows.fetch(_InSight, _IN_SIGHT, {"dlq": dlq, "visibility": visibility, "count_lag": count_lag})
    return {row.dlq_id: row.n for row in found}


@dataclass(frozen=True, slots=True)
class _State:
    message_id: str
    state: str


def letter_states(dlq: int, *, page: int = 5_000) -> Iterator[dict[str, str]]:
    """Yield the states of all letters of a DLQ in dicts from message id to state, each with at most `page` letters."""
    above: str | None = ""
    while above is not None:
        found = rows.fetch(_State, _STATES, {"dlq": dlq, "above": above, "page": page})
        yield {row.message_id: row.state for row in found}
        above = found[-1].message_id if len(found) == page else None
