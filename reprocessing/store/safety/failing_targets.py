"""Pause automatic runs whose targets have failed for `give_up_after`, or park the only message for such a target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, LiteralString, assert_never

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.safety.give_up import FailingTarget, KeepTrying, ParkMessage, PauseRun, give_up
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.replay.settlement import Deletable, LetterClosing, close_letters, put_off_letters
from reprocessing.store.safety.breaker_status import BREAKER_NAME
from reprocessing.store.safety.breaker_window import ATTEMPTS_READ, NEWEST_SENDS
from reprocessing.store.safety.paused_runs import PausedRun, pause_run

#: The states of an unfinished message in a lane.
_UNFINISHED: Final[LiteralString] = "('waiting', 'sending', 'awaiting')"

# Attempts of breakers that have failed for at least the shortest `give_up_after` of all DLQs, in the order of sending.
# `pause` is the time before an attempt in which no other attempt was open. Poison messages (refused, and
# `counts_as_failure` is null) are not failures of the target.
_SENDS: Final[LiteralString] = f"""
failing AS MATERIALIZED (
    SELECT b.id, b.target_id, b.rate_class_id, {BREAKER_NAME} AS name, b.failing_since,
           make_interval(secs => 2 * b.cooldown_cap) AS slack
      FROM redrive_breaker b JOIN redrive_target t ON t.id = b.target_id
      LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
     WHERE b.failing_since IS NOT NULL
), sends AS MATERIALIZED (
    SELECT f.id AS breaker_id, f.slack, a.run_id, a.lane_id, a.letter_id, a.id, a.no, a.detail, a.opened_at, a.ended,
           a.counts_as_failure IS TRUE OR a.returned_at IS NOT NULL AS failed,
           a.opened_at - max(a.ended) OVER (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS pause,
           lag(a.letter_id) OVER earlier AS letter_before, lag(a.no) OVER earlier AS no_before
      FROM failing f
     CROSS JOIN LATERAL (
        SELECT newest.*, coalesce(greatest(newest.closed_at, newest.returned_at), redrive_now()) AS ended
          FROM ({NEWEST_SENDS.format(breaker="f.id")}) newest WHERE newest.breaker_id = f.id) a
     WHERE f.failing_since <= redrive_now() - make_interval(secs => (SELECT min(give_up_after) FROM redrive_dlq))
    WINDOW earlier AS (PARTITION BY f.id ORDER BY a.id)
)"""  # noqa: S608  # the inserted texts are constants

# When each breaker was tried again after a pause that was longer than cooldown and backoff. In such a pause, no worker
# ran, a person had stopped the DLQ, or there was nothing to send. The backoff is of the message that was tried again,
# or of the message tried before. Such pauses are few, so each message is read by itself.
_RESTARTS: Final[LiteralString] = """
restarts AS (
    SELECT s.breaker_id, max(s.opened_at) AS at
      FROM sends s
     CROSS JOIN LATERAL (
        SELECT coalesce(max(l.seconds), 0) AS seconds
          FROM (VALUES (s.letter_id, s.no - 1), (s.letter_before, s.no_before)) AS tried (letter_id, failures)
         CROSS JOIN LATERAL (
            SELECT least(coalesce(u.backoff_cap, c.backoff_cap, d.backoff_cap),
                         coalesce(u.backoff_base, c.backoff_base, d.backoff_base)
                         * 2.0 ^ least(tried.failures - 1, 64)) AS seconds
              FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id
              LEFT JOIN redrive_rule u ON u.id = l.rule_id LEFT JOIN redrive_rate_class c ON c.id = l.rate_class_id
             WHERE l.id = tried.letter_id AND tried.failures > 0 OFFSET 0) l) backoff
     WHERE s.pause > s.slack AND s.pause > s.slack + make_interval(secs => backoff.seconds)
     GROUP BY s.breaker_id
)"""

# Whether the run has a message other than `mine` that can be sent with breaker y: in another lane of this breaker, in
# an open attempt, or after `mine` in its lane. Each read is bounded; `coalesce` keeps the planner from the run's index.
_OTHERS: Final[LiteralString] = f"""
coalesce(
    (SELECT n.id FROM redrive_lane n
      WHERE n.phase = 'ready' AND n.run_id = y.run_id AND n.breaker_id = y.breaker_id
        AND n.id IS DISTINCT FROM mine.lane_id
      ORDER BY n.run_id, n.breaker_id, n.due_at LIMIT 1),
    (SELECT n.id FROM redrive_lane n
      WHERE n.phase = 'leased' AND coalesce(n.run_id, 0) = y.run_id AND coalesce(n.breaker_id, 0) = y.breaker_id
        AND n.id IS DISTINCT FROM mine.lane_id
      ORDER BY n.due_at LIMIT 1),
    (SELECT a.id FROM redrive_attempt a
      WHERE a.target_id = y.target_id AND a.closed_at IS NULL AND coalesce(a.breaker_id, 0) = y.breaker_id
        AND coalesce(a.run_id, 0) = y.run_id AND a.letter_id IS DISTINCT FROM mine.letter_id
      ORDER BY a.target_id LIMIT 1),
    (SELECT l.id FROM {first_letters("l", "mine.lane_id", most="%(depth)b::int")}
      WHERE l.id <> mine.letter_id AND l.run_id = y.run_id AND l.target_id = y.target_id
        AND l.rate_class_id IS NOT DISTINCT FROM y.rate_class_id LIMIT 1)
) IS NOT NULL"""  # noqa: S608  # the inserted text is a constant

# Whether the run has messages for a target that does not fail, or whose target is not known yet.
_ELSEWHERE: Final[LiteralString] = """
coalesce(
    (SELECT n.id FROM redrive_lane n
      WHERE n.phase = 'ready' AND n.run_id = y.run_id AND n.breaker_id IS NULL
      ORDER BY n.run_id, n.breaker_id, n.due_at LIMIT 1),
    (SELECT n.id FROM redrive_lane n
      WHERE n.phase = 'leased' AND coalesce(n.run_id, 0) = y.run_id
        AND (n.breaker_id IS NULL OR n.breaker_id NOT IN (SELECT id FROM failing))
      ORDER BY n.due_at LIMIT 1),
    (SELECT o.id FROM redrive_breaker o
      WHERE o.id NOT IN (SELECT id FROM failing) AND coalesce(
        (SELECT n.id FROM redrive_lane n
          WHERE n.phase = 'ready' AND n.run_id = y.run_id AND n.breaker_id = o.id
          ORDER BY n.run_id, n.breaker_id, n.due_at LIMIT 1),
        (SELECT a.id FROM redrive_attempt a
          WHERE a.target_id = o.target_id AND a.closed_at IS NULL AND coalesce(a.breaker_id, 0) = o.id
            AND coalesce(a.run_id, 0) = y.run_id
          ORDER BY a.target_id LIMIT 1)) IS NOT NULL
      LIMIT 1)
) IS NOT NULL"""

# Runs that may send, and whose messages failed at the target lately. A target's own text, which may quote a payload,
# comes after chr(26) and is left out.
_FAILING: Final[LiteralString] = f"""
WITH {_SENDS}, {_RESTARTS}, tried AS (
    SELECT s.breaker_id, f.target_id, f.rate_class_id, f.name, s.run_id, p.since, d.give_up_after, d.max_attempts,
           count(*)::int AS attempts, count(DISTINCT s.lane_id)::int AS keys, array_agg(s.letter_id) AS letters,
           coalesce(split_part((array_agg(s.detail ORDER BY s.id DESC) FILTER (WHERE s.detail IS NOT NULL))[1],
                               ': ' || chr(26), 1), '') AS last_failure
      FROM sends s JOIN failing f ON f.id = s.breaker_id LEFT JOIN restarts x ON x.breaker_id = s.breaker_id
      JOIN redrive_run r ON r.id = s.run_id JOIN redrive_dlq d ON d.id = r.dlq_id
     CROSS JOIN LATERAL (SELECT greatest(f.failing_since, x.at, r.changed_at) AS since) p
     WHERE s.failed AND s.ended >= p.since AND r.kind = 'automatic' AND r.id IN ({ACTIVE_RUNS})
       AND p.since <= redrive_now() - make_interval(secs => d.give_up_after)
     GROUP BY s.breaker_id, f.target_id, f.rate_class_id, f.name, s.run_id, p.since, d.give_up_after, d.max_attempts
    HAVING max(s.ended + s.slack) >= redrive_now()
)
SELECT y.breaker_id, y.run_id, mine.lane_id, mine.letter_id, y.name, y.attempts, y.keys, y.last_failure,
       y.give_up_after, y.max_attempts, extract(epoch FROM redrive_now() - y.since)::float8 AS seconds,
       coalesce(mine.attempts, 0) AS of_message, {_OTHERS} AS has_others, {_ELSEWHERE} AS has_other_targets
  FROM tried y
  LEFT JOIN LATERAL (
    SELECT l.id AS letter_id, l.lane_id, m.attempts
      FROM (SELECT id, count(*)::int AS attempts FROM unnest(y.letters) AS id GROUP BY id) m
     CROSS JOIN LATERAL (SELECT * FROM redrive_letter x WHERE x.id = m.id OFFSET 0) l
     WHERE l.state IN {_UNFINISHED} AND l.run_id = y.run_id AND l.target_id = y.target_id
       AND l.rate_class_id IS NOT DISTINCT FROM y.rate_class_id
     ORDER BY m.attempts DESC, l.id LIMIT 1) mine ON true
 ORDER BY y.run_id, y.breaker_id
"""  # noqa: S608  # the inserted texts are constants

# Senders lock the breaker before the lanes.
_LOCK_BREAKER: Final[LiteralString] = "SELECT id FROM redrive_breaker WHERE id = %(breaker)b FOR NO KEY UPDATE"
_FREE: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l JOIN redrive_lane n ON n.id = l.lane_id
 WHERE l.id = %(letter)b AND l.state = 'waiting' AND n.id = %(lane)b AND n.phase <> 'leased'
"""
_BEGIN_AGAIN: Final[LiteralString] = "UPDATE redrive_breaker SET failing_since = NULL WHERE id = %(breaker)b"


@dataclass(frozen=True, slots=True)
class _Failing(FailingTarget):
    breaker_id: int
    run_id: int
    lane_id: int | None
    letter_id: int | None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The runs that were paused, and the messages that were parked, and may now be deleted from their DLQ."""

    paused: tuple[PausedRun, ...]
    deletable: tuple[Deletable, ...]


def give_up_on_failing_targets() -> GivenUp:
    """Pause automatic runs whose targets all failed for the time `give_up_after` (a setting of the DLQ, default 24 h).

    If a run has only one message for the target, park this message after `max_attempts` instead, because no other
    message can test the target. `domain.safety.give_up` has the exact rules. This function commits by itself.
    """
    paused: list[PausedRun] = []
    deletable: list[Deletable] = []
    for failing in rows.fetch(_Failing, _FAILING, {"depth": ATTEMPTS_READ}):
        match give_up(failing):
            case KeepTrying():
                pass
            case ParkMessage(why):
                deletable += rows.in_transaction(partial(_park, failing, why))
            case PauseRun(why, public_why):
                done = rows.in_transaction(partial(pause_run, failing.run_id, why, public_why=public_why))
                paused += [done] if done else []
            case _ as never:
                assert_never(never)
    return GivenUp(tuple(paused), tuple(deletable))


def _park(failing: _Failing, why: str) -> list[Deletable]:
    """Park the run's only message for the target, and let `give_up_after` begin again.

    The message is not parked yet if it is being sent, if its lane is leased, or if its sent copy may still come back.
    The next call then tries again.
    """
    letter_id, lane_id = failing.letter_id or 0, failing.lane_id or 0
    values = {"breaker": failing.breaker_id, "letter": letter_id, "lane": lane_id}
    rows.execute(_LOCK_BREAKER, values)
    lanes.lock([lane_id], [None])
    if not rows.column(int, _FREE, values) or put_off_letters([letter_id], owned=False):
        return []
    deletable = close_letters([LetterClosing(letter_id, LetterState.PARKED, ParkedReason.ATTEMPTS_SPENT, why)])
    lane_state.advance([lane_id], [None])
    rows.execute(_BEGIN_AGAIN, values)
    return deletable
