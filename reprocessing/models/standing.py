"""Where every dlq stands: counts and facts in a handful of statements, however many letters there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.domain.lifecycle import FINISHED
from reprocessing.models import rows
from reprocessing.models.brakes import FULL, UNWELL


@dataclass(frozen=True, slots=True)
class Watch:
    """A dlq itself.

    Attributes:
        depth_at: when SQS was last asked for the two counts.
        drained_through: the start of the last clean capture that ran dry; None: there was none yet.
        captured_until: until when a capture that is under way owns it.
        unclean_until: until when a capture that died may have left messages out of sight.
        held: copies out of sight in the dlq; `to_delete`: those whose letters are finished.
        every, crontab: the schedule, seconds or the five fields.
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
    unclean_until: datetime | None
    trouble: str
    held: int
    to_delete: int
    every: str | None
    crontab: str | None


@dataclass(frozen=True, slots=True)
class Letters:
    """Letters of one dlq in one state; of parked ones, for one reason.

    Attributes:
        died_at: when the oldest of them was sent first.
        expires_at: when the dlq drops the first of their copies; Postgres keeps the letters.
    """

    dlq_id: int
    state: str
    reason: str
    presumed: bool
    n: int
    died_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes of one dlq in one phase, for one reason.

    Attributes:
        due: their time has come.
        due_at: when the first of them may be leased, or until when it is.
    """

    dlq_id: int
    phase: str
    why: str
    due: bool
    n: int
    due_at: datetime | None


@dataclass(frozen=True, slots=True)
class Working:
    """A run that has not ended, and how far it is.

    `why`: who stopped it and why. `wave`: the number of the wave it is in, None without any; that lets `wave_size`
    letters go (None: all), of which `touched` have been sent.
    """

    dlq_id: int
    name: str
    kind: str
    state: str
    asked_by: str
    started_at: datetime | None
    unfinished: int
    why: str
    wave: int | None
    wave_size: int | None
    touched: int


_WATCHES = """
SELECT d.id, d.name, d.mode, d.stopped_at, d.stopped_by, d.stop_reason, d.depth_visible, d.depth_in_flight,
       d.depth_at, d.next_poll_at, d.drained_through, d.trouble,
       CASE WHEN d.unclean_until > redrive_now() THEN d.unclean_until END AS unclean_until,
       CASE WHEN d.leased_until > redrive_now() THEN d.leased_until END AS captured_until,
       coalesce(c.held, 0) AS held, coalesce(c.to_delete, 0) AS to_delete, i.every || ' ' || i.period AS every,
       concat_ws(' ', t.minute, t.hour, t.day_of_month, t.month_of_year, t.day_of_week) AS crontab
  FROM redrive_dlq d
  LEFT JOIN django_celery_beat_intervalschedule i ON i.id = d.interval_id
  LEFT JOIN django_celery_beat_crontabschedule t ON t.id = d.crontab_id
  LEFT JOIN (SELECT dlq_id, count(*) FILTER (WHERE state = 'held') AS held,
                    count(*) FILTER (WHERE state = 'delete') AS to_delete
               FROM redrive_custody WHERE state IN ('held', 'delete') GROUP BY dlq_id) c ON c.dlq_id = d.id
 WHERE %(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint
 ORDER BY d.name
"""

_LETTERS = """
SELECT dlq_id, state, reason, presumed, count(*) AS n, min(died_at) AS died_at, min(expires_at) AS expires_at
  FROM redrive_letter WHERE %(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint
 GROUP BY dlq_id, state, reason, presumed ORDER BY dlq_id, state, reason, presumed
"""

# What a lane was told when it was handed back may be old: what holds it back now is said by run, breaker and target.
_LANES = f"""
SELECT n.dlq_id, n.phase, w.why, coalesce(n.due_at <= redrive_now(), false) AS due, count(*) AS n,
       min(n.due_at) AS due_at
  FROM redrive_lane n LEFT JOIN redrive_run r ON r.id = n.run_id LEFT JOIN redrive_breaker b ON b.id = n.breaker_id
 CROSS JOIN LATERAL (
    SELECT CASE WHEN n.phase <> 'ready' THEN n.why
                WHEN EXISTS (SELECT FROM redrive_halt) THEN 'everything is stopped'
                WHEN EXISTS (SELECT FROM redrive_dlq d WHERE d.id = n.dlq_id AND d.stopped_at IS NOT NULL)
                THEN 'their dlq is stopped'
                WHEN r.state <> 'running' THEN 'their run ' || r.name || ' is ' || r.state
                WHEN r.id IN ({FULL}) THEN 'the outcome of their run''s wave is not known yet'
                WHEN b.target_id IN ({UNWELL}) THEN 'their target is not known to be well'
                WHEN b.state = 'open' THEN 'the breaker is open'
                WHEN b.state = 'half_open' AND b.canary_until > redrive_now()
                THEN 'the breaker is half open, and a canary is out'
                WHEN n.why LIKE 'the breaker is %%' OR n.why LIKE 'its target is not well%%' THEN ''
                ELSE n.why END AS why) w
 WHERE n.phase <> 'idle' AND (%(dlq)b::bigint IS NULL OR n.dlq_id = %(dlq)b::bigint)
 GROUP BY n.dlq_id, n.phase, w.why, due ORDER BY n.dlq_id, n.phase, n DESC, w.why
"""  # noqa: S608  # the inserted text is a constant

# When a dlq drops the first copy of a letter that is unfinished.
_EXPIRIES = """
SELECT c.dlq_id, min(l.expires_at) AS at FROM redrive_custody c JOIN redrive_letter l ON l.id = c.letter_id
 WHERE c.state = 'held' AND l.state <> ALL(%(finished)b::text[]) AND l.expires_at IS NOT NULL
   AND (%(dlq)b::bigint IS NULL OR c.dlq_id = %(dlq)b::bigint)
 GROUP BY c.dlq_id
"""

_WORKING = """
SELECT r.dlq_id, r.name, r.kind, r.state, r.asked_by, r.started_at,
       (SELECT count(*) FROM redrive_letter l
         WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')) AS unfinished,
       r.why, w.no AS wave, w.size AS wave_size,
       (SELECT count(*) FROM redrive_attempt a WHERE a.wave_id = w.id) AS touched
  FROM redrive_run r LEFT JOIN redrive_wave w ON w.run_id = r.id AND w.settled_at IS NULL
 WHERE r.state NOT IN ('finished', 'aborted') AND (%(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint)
 ORDER BY r.dlq_id, r.id
"""


def watches(dlq: int | None = None) -> list[Watch]:
    """This dlq, or every one, by name."""
    return rows.fetch(Watch, _WATCHES, {"dlq": dlq})


def letters(dlq: int | None = None) -> list[Letters]:
    """The letters of this dlq, or of every one, counted."""
    return rows.fetch(Letters, _LETTERS, {"dlq": dlq})


def lanes(dlq: int | None = None) -> list[Lanes]:
    """The lanes of this dlq, or of every one, that have something to replay, counted."""
    return rows.fetch(Lanes, _LANES, {"dlq": dlq})


@dataclass(frozen=True, slots=True)
class _Expiry:
    dlq_id: int
    at: datetime


def expiries(dlq: int | None = None) -> dict[int, datetime]:
    """When this dlq, or each, drops the first copy of an unfinished letter; nothing of those that hold none."""
    values = {"dlq": dlq, "finished": [state.value for state in FINISHED]}
    return {row.dlq_id: row.at for row in rows.fetch(_Expiry, _EXPIRIES, values)}


def working(dlq: int | None = None) -> list[Working]:
    """The runs of this dlq, or of every one, that have not ended."""
    return rows.fetch(Working, _WORKING, {"dlq": dlq})


@dataclass(frozen=True, slots=True)
class _State:
    message_id: str
    state: str


def states(dlq: int) -> dict[str, str]:
    """The state of every letter of a dlq, by the message id under which it died."""
    statement = "SELECT message_id, state FROM redrive_letter WHERE dlq_id = %(dlq)b"
    return {row.message_id: row.state for row in rows.fetch(_State, statement, {"dlq": dlq})}
