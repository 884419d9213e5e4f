"""Count the letters, lanes and targets of a planned run, and the letters that it could not send, by reason.

The letters of a large plan are counted only once, when they are selected (`store_figures`), because counting is slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing import conf
from reprocessing.domain.runs.forecast import next_multiple
from reprocessing.domain.safety.rate_ramp import IDLE_SECONDS
from reprocessing.domain.targets.target_kind import SYNCHRONOUS
from reprocessing.models.run import Run
from reprocessing.models.target import Advance, Proof
from reprocessing.store import rows
from reprocessing.store.outcomes.evidence import LEAST_WAIT
from reprocessing.store.runs.progress import MAX_COUNT, MAX_EXACT

#: The columns of `TargetFigures` that are stored with a large plan; other columns are the target's present settings.
_KEPT: Final = ("target_id", "letters", "longest", "lanes", "size", "late")


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Figures about the letters that a planned run would send; without a plan, about all captured letters of the DLQ.

    Attributes:
        letters: number of letters that can be sent. They are on `lanes` lanes, of which the longest has `longest`.
        objected: number of letters that cannot be sent: the run would park them.
        returned: number of unfinished letters of ended runs, or of plans that took them over: the run would adopt them.
        expires_at: when SQS deletes the first of all these letters' messages; None: SQS has no such message.
        now: the time by the database's clock.
    """

    letters: int
    lanes: int
    longest: int
    objected: int
    returned: int
    expires_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class BlockedCount:
    """How many letters a run would park for one reason, without sending them."""

    reason: str
    letters: int


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """How many letters of a plan are for one target, and the limits of the target. Times are in seconds.

    Attributes:
        longest: number of letters in the longest lane. `lanes`: number of lanes.
        ramp: share of the rate limit with which sends begin. `ramp_every`: time until the share is raised.
        tail: shortest time from a send to its outcome. `tail_of_busy`: the same time for a target that is never empty.
        room: the most letters that may wait for their outcome; None: no limit.
        round_trip: shortest time between two sends of one lane; 0: the second send does not wait for an outcome.
        watched_by: DLQ to which failed messages come back; None: the outcome does not depend on captures.
        every: time between two captures of `watched_by`; 0: a capture is always running.
        late: number of letters that would expire while they wait for earlier letters of their lanes.
        size: number of bytes of all letters.
        confirmed_fanout: how many other subscribers of the topic or bus also get each letter; None: no topic or bus.
    """

    target_id: int
    name: str
    letters: int
    longest: int
    rate: float | None
    proof: str
    advance: str
    window: float
    ramp: float
    ramp_every: float
    tail: float
    tail_of_busy: float
    round_trip: float
    watched_by_id: int | None
    watched_by: str | None
    every: float
    late: int
    kind: str
    size: int
    confirmed_fanout: int | None
    lanes: int = 0
    room: int | None = None

    @property
    def outcome_in(self) -> float:
        """Return the shortest time from a send until a capture shows its outcome."""
        return next_multiple(self.tail, self.every) if self.tail else 0.0

    @property
    def overtakes(self) -> int:
        """The most letters that may be sent before an earlier letter of their lane, which failed, is sent again."""
        waits = self.advance == Advance.SETTLED and self.proof != Proof.ACCEPTED
        answered = self.proof == Proof.ACCEPTED and self.kind in SYNCHRONOUS
        return 0 if waits or answered else self.longest - 1


@dataclass(frozen=True, slots=True)
class ExpiringLetters:
    """How many letters for a target expire in the same hour. `expires_at`: when the first of them expires."""

    target_id: int
    expires_at: datetime
    letters: int


@dataclass(frozen=True, slots=True)
class LetterFigures:
    """The figures of a plan's letters. `as_of`: when the letters were selected and counted; None: counted now."""

    prospect: PlanFigures
    objections: list[BlockedCount]
    targets: list[TargetFigures]
    expiring: list[ExpiringLetters]
    as_of: datetime | None = None


# Letters selected for a plan; without a plan, captured letters in no run.
_READY: Final[LiteralString] = """
ready AS (
    SELECT * FROM redrive_letter WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND {whose}
)
"""

_PROSPECT: Final[LiteralString] = f"""
WITH {_READY}, lanes AS (
    SELECT count(*) AS n FROM ready WHERE blocked_reason = '' GROUP BY source_id, key_hash
)
SELECT (SELECT coalesce(sum(n), 0)::bigint FROM lanes) AS letters, (SELECT count(*) FROM lanes) AS lanes,
       (SELECT coalesce(max(n), 0) FROM lanes) AS longest,
       (SELECT count(*) FROM ready WHERE blocked_reason <> '') AS objected, 0::bigint AS returned,
       (SELECT min(expires_at) FROM ready) AS expires_at, redrive_now() AS now
"""  # noqa: S608  # the inserted text is the constant above

# Counts unfinished letters of ended runs, and of plans that took such letters over, up to a limit. Letters are read for
# each run by index: with a join, the planner may read all letters.
_RETURNED: Final[LiteralString] = """
SELECT count(*) AS n FROM (
    SELECT FROM redrive_run r
     CROSS JOIN LATERAL (
        SELECT FROM redrive_letter WHERE run_id = r.id AND state IN ('waiting', 'sending', 'awaiting')
         ORDER BY run_id, state LIMIT %(most)b::bigint) l
     WHERE r.dlq_id = %(dlq)b AND r.state IN ('finished', 'aborted', 'planned')
     LIMIT %(most)b::bigint) few
"""

_OBJECTIONS: Final[LiteralString] = f"""
WITH {_READY}
SELECT blocked_reason AS reason, count(*) AS letters FROM ready WHERE blocked_reason <> ''
 GROUP BY blocked_reason ORDER BY letters DESC, reason
"""  # noqa: S608  # the inserted text is the constant above

# The shortest times from one letter of a lane to the next, and from a send to its outcome. An outcome by absence is
# known at the earliest when the target can have been seen empty twice.
_TIMES: Final[LiteralString] = f"""
 CROSS JOIN LATERAL (
       SELECT CASE WHEN t.proof = 'absence' THEN {LEAST_WAIT} ELSE 0 END AS seconds) tail
 CROSS JOIN LATERAL (SELECT CASE WHEN t.advance = 'settled' THEN tail.seconds ELSE 0 END AS seconds) trip
"""

_COUNTED: Final[LiteralString] = f"""
WITH {_READY}, placed AS (
    SELECT target_id, expires_at, size,
           row_number() OVER (PARTITION BY source_id, key_hash ORDER BY sequence, message_id) AS place
      FROM ready WHERE blocked_reason = ''
), counted AS (
    SELECT p.target_id, count(*) AS letters, max(place) AS longest, count(*) FILTER (WHERE place = 1) AS lanes,
           sum(size)::bigint AS size,
           count(*) FILTER (WHERE place > 1 AND expires_at > redrive_now()
                              AND place * trip.seconds > extract(epoch FROM expires_at - redrive_now())) AS late
      FROM placed p JOIN redrive_target t ON t.id = p.target_id {_TIMES}
     GROUP BY p.target_id
)
"""  # noqa: S608  # the inserted texts are the constants above

_STORED: Final[LiteralString] = """
WITH counted AS (
    SELECT * FROM jsonb_to_recordset(%(stored)b::jsonb) AS c(
        target_id bigint, letters bigint, longest bigint, lanes bigint, size bigint, late bigint)
)
"""

# After idle time the ramp restarts (see `rate_ramps.reset_idle_ramps`). If a target is never empty, an outcome by
# absence is known after the window and the delay of SQS's counts.
_OF_TARGETS: Final[LiteralString] = f"""
SELECT t.id AS target_id, t.arn AS name, c.letters, c.longest, c.lanes, t.rate, t.proof, t.advance,
       t.window, b.ramp_every, tail.seconds AS tail,
       CASE WHEN t.proof = 'absence' THEN t.window + %(count_lag)b::float8 ELSE 0 END AS tail_of_busy,
       trip.seconds AS round_trip,
       w.id AS watched_by_id, w.name AS watched_by, 0::float8 AS every,
       CASE WHEN b.ramp_at + make_interval(secs => greatest(%(idle)b::float8, 2 * b.ramp_every)) > redrive_now()
            THEN b.ramp ELSE b.ramp_from END AS ramp,
       c.late, t.kind, c.size, t.confirmed_fanout, %(room)b::int AS room
  FROM counted c JOIN redrive_target t ON t.id = c.target_id
  JOIN redrive_breaker b ON b.target_id = t.id AND b.rate_class_id IS NULL
  LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id AND t.proof = 'absence' {_TIMES}
 ORDER BY t.id
"""  # noqa: S608  # the inserted text is the constant above

_SHARES: Final[LiteralString] = _COUNTED + _OF_TARGETS
_STORED_SHARES: Final[LiteralString] = _STORED + _OF_TARGETS

_EXPIRING: Final[LiteralString] = f"""
WITH {_READY}
SELECT target_id, min(expires_at) AS expires_at, count(*) AS letters
  FROM ready WHERE blocked_reason = '' AND expires_at IS NOT NULL AND target_id IS NOT NULL
 GROUP BY target_id, date_trunc('hour', expires_at, 'UTC') ORDER BY target_id, min(expires_at)
"""  # noqa: S608  # the inserted text is the constant above

_STORE: Final[LiteralString] = "UPDATE redrive_run SET figures = %(figures)b::jsonb WHERE id = %(run)b"


def plan_figures_of(dlq: int, *, run: int | None = None) -> PlanFigures:
    """Return the figures of a planned run's letters; without `run`, of all captured letters that are in no run.

    `returned` is counted up to 20,000 (`MAX_COUNT`).
    """
    found = rows.fetch(PlanFigures, _for_run(run, _PROSPECT), {"dlq": dlq, "run": run})[0]
    return replace(found, returned=rows.value(int, _RETURNED, {"dlq": dlq, "most": MAX_COUNT}))


def blocked_counts(dlq: int, *, run: int | None = None) -> list[BlockedCount]:
    """Return, by reason, how many letters the run would park without sending them, the most frequent reason first."""
    return rows.fetch(BlockedCount, _for_run(run, _OBJECTIONS), {"dlq": dlq, "run": run})


def target_figures(dlq: int, *, run: int | None = None, count_lag: float = 0.0) -> list[TargetFigures]:
    """Return, for each target, the figures of a planned run's letters (without `run`: of captured letters in no run).

    `count_lag`: by how many seconds SQS's counts of messages may be late.
    """
    return rows.fetch(TargetFigures, _for_run(run, _SHARES), {"dlq": dlq, "run": run, **_limits(count_lag)})


def expiring_letters(dlq: int, *, run: int) -> list[ExpiringLetters]:
    """Return how many letters of a planned run expire, by target and hour, the soonest first."""
    return rows.fetch(ExpiringLetters, _for_run(run, _EXPIRING), {"dlq": dlq, "run": run})


def letter_figures(run: Run, *, count_lag: float) -> LetterFigures:
    """Return the figures of a plan's letters. Those of a large plan were counted when its letters were selected."""
    if run.figures is None:
        return LetterFigures(
            plan_figures_of(run.dlq_id, run=run.pk), blocked_counts(run.dlq_id, run=run.pk),
            target_figures(run.dlq_id, run=run.pk, count_lag=count_lag), expiring_letters(run.dlq_id, run=run.pk),
        )  # fmt: skip
    stored = run.figures
    values = {"stored": Jsonb(stored["targets"]), **_limits(count_lag)}
    expires = stored["expires_at"] and datetime.fromisoformat(stored["expires_at"])
    returned = rows.value(int, _RETURNED, {"dlq": run.dlq_id, "most": MAX_COUNT})
    now = rows.value(datetime, "SELECT redrive_now() AS now", {})
    return LetterFigures(
        PlanFigures(**stored["counts"], returned=returned, expires_at=expires, now=now),
        [BlockedCount(reason, letters) for reason, letters in stored["objections"]],
        rows.fetch(TargetFigures, _STORED_SHARES, values),
        [ExpiringLetters(target, datetime.fromisoformat(at), n) for target, at, n in stored["expiring"]],
        as_of=datetime.fromisoformat(stored["as_of"]),
    )  # fmt: skip


def store_figures(dlq: int, run: int, *, selected: int) -> None:
    """Store the figures of a plan with more than 10,000 selected letters, in the transaction that selects them."""
    if selected <= MAX_EXACT:
        return
    prospect, count_lag = plan_figures_of(dlq, run=run), conf.current().count_lag.total_seconds()
    figures = {
        "as_of": prospect.now.isoformat(), "expires_at": prospect.expires_at and prospect.expires_at.isoformat(),
        "counts": {name: getattr(prospect, name) for name in ("letters", "lanes", "longest", "objected")},
        "objections": [[blocked.reason, blocked.letters] for blocked in blocked_counts(dlq, run=run)],
        "targets": [{name: getattr(each, name) for name in _KEPT}
                    for each in target_figures(dlq, run=run, count_lag=count_lag)],
        "expiring": [[each.target_id, each.expires_at.isoformat(), each.letters]
                     for each in expiring_letters(dlq, run=run)],
    }  # fmt: skip
    rows.execute(_STORE, {"run": run, "figures": Jsonb(figures)})


def _limits(count_lag: float) -> dict[str, float]:
    return {"count_lag": count_lag, "idle": IDLE_SECONDS, "room": conf.current().max_unsettled}


def _for_run(run: int | None, statement: LiteralString) -> LiteralString:
    return statement.format(whose="run_id IS NULL" if run is None else "run_id = %(run)b::bigint")
