"""Find targets that have failed for long in automatic runs, and pause the run, or park its only message."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, LiteralString, assert_never

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.safety.give_up import FailingTarget, KeepTrying, ParkMessage, PauseRun, give_up
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.settlement import Closing, Deletable, close, put_off
from reprocessing.store.safety.breaker_status import NAME
from reprocessing.store.safety.breaker_window import NEWEST_SENDS
from reprocessing.store.safety.paused_runs import PausedRun, pause_run
from reprocessing.store.safety.spared_attempts import DEPTH

# While nothing succeeds there are few attempts: those before the breaker opened, and a canary for each cooldown.
_FAILING: Final[LiteralString] = f"""
WITH failing AS (
    SELECT b.id, {NAME} AS name, b.failing_since FROM redrive_breaker b JOIN redrive_target t ON t.id = b.target_id
      LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
     WHERE b.failing_since IS NOT NULL
), tried AS (
    SELECT f.id AS breaker_id, f.name, a.run_id, min(f.failing_since) AS since, count(*)::int AS attempts,
           count(DISTINCT a.lane_id)::int AS keys, max(a.lane_id) AS lane_id, max(a.letter_id) AS letter_id,
           coalesce((array_agg(a.detail ORDER BY a.id DESC) FILTER (WHERE a.detail IS NOT NULL))[1], '') AS last_failure
      FROM failing f
     CROSS JOIN LATERAL (
        SELECT * FROM ({NEWEST_SENDS.format(breaker="f.id")}) newest
         WHERE newest.breaker_id = f.id
           AND (newest.ill OR newest.returned_at IS NOT NULL OR newest.outcome = 'refused')) a
     WHERE a.run_id IS NOT NULL AND coalesce(a.returned_at, a.closed_at) >= f.failing_since
     GROUP BY f.id, f.name, a.run_id
)
SELECT y.breaker_id, y.run_id, y.lane_id, y.letter_id, y.name, y.attempts, y.keys, y.last_failure,
       d.give_up_after, d.max_attempts,
       extract(epoch FROM redrive_now() - greatest(y.since, r.changed_at))::float8 AS seconds,
       EXISTS (SELECT FROM redrive_letter l
                WHERE l.run_id = r.id AND l.state IN ('waiting', 'sending', 'awaiting') AND l.id <> y.letter_id)
           AS others,
       EXISTS (SELECT FROM redrive_lane n
                WHERE n.run_id = r.id AND n.due_at IS NOT NULL
                  AND (n.breaker_id IS NULL OR n.breaker_id NOT IN (SELECT id FROM failing))) AS elsewhere
  FROM tried y JOIN redrive_run r ON r.id = y.run_id JOIN redrive_dlq d ON d.id = r.dlq_id
 WHERE r.kind = 'standing' AND r.state = 'running'
   AND greatest(y.since, r.changed_at) <= redrive_now() - make_interval(secs => d.give_up_after)
 ORDER BY y.run_id, y.breaker_id
"""  # noqa: S608  # the inserted text is a constant

# The time starts again: the next message that is tried there gets all of it.
_TRY_ANEW: Final[LiteralString] = """
UPDATE redrive_breaker SET failing_since = NULL WHERE id = %(breaker)b
"""


@dataclass(frozen=True, slots=True)
class _Failing:
    breaker_id: int
    run_id: int
    lane_id: int
    letter_id: int
    name: str
    attempts: int
    keys: int
    last_failure: str
    give_up_after: float
    max_attempts: int
    seconds: float
    others: bool
    elsewhere: bool

    @property
    def target(self) -> FailingTarget:
        return FailingTarget(
            name=self.name, seconds=self.seconds, give_up_after=self.give_up_after, attempts=self.attempts,
            keys=self.keys, max_attempts=self.max_attempts, has_others=self.others, has_other_targets=self.elsewhere,
            last_failure=self.last_failure,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The runs that were paused, and the copies that may be deleted because their message was parked."""

    paused: tuple[PausedRun, ...]
    deletable: tuple[Deletable, ...]


def give_up_on_failing_targets() -> GivenUp:
    """Pause automatic runs whose targets kept failing for `give_up_after`, or park their only message.

    One statement if no target fails. Called outside transactions; commits by itself.
    """
    paused: list[PausedRun] = []
    deletable: list[Deletable] = []
    for failing in rows.fetch(_Failing, _FAILING, {"depth": DEPTH}):
        match give_up(failing.target):
            case KeepTrying():
                pass
            case ParkMessage(why):
                deletable += rows.whole(partial(_park, failing, why))
            case PauseRun(why, told):
                done = rows.whole(partial(pause_run, failing.run_id, why, told=told))
                paused += [done] if done else []
            case _ as never:
                assert_never(never)
    return GivenUp(tuple(paused), tuple(deletable))


def _park(failing: _Failing, why: str) -> list[Deletable]:
    """Park the message, unless a worker holds its lane, or a copy of it may still come back."""
    rows.execute(_TRY_ANEW, {"breaker": failing.breaker_id})
    lanes.lock([failing.lane_id], [None])
    if put_off([failing.letter_id], owned=False):
        return []
    closing = Closing(failing.letter_id, LetterState.PARKED, reason=ParkedReason.ATTEMPTS_SPENT, detail=why)
    deletable = close([closing])
    lanes.advance([failing.lane_id], [None])
    return deletable
