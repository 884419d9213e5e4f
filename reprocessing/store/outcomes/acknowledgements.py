"""Close attempts, and change their letters, after a consumer reported, or if a consumer did not report in time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.models.rule import RULE_BACKOFF
from reprocessing.store import rows
from reprocessing.store.outcomes.evidence import OpenAttempt
from reprocessing.store.outcomes.reports import ATTEMPT_REPORTS, RECENT_SECONDS
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.replay.settlement_effects import (
    CLAIMS_AND_COPIES,
    COPY_UNTIL,
    DECIDE_IF_FINISHED,
    FREE_FORMER_CLAIMS,
    PERSON_DECIDES,
    RAISE_HIGHEST_SENT,
)

_NAMED = f"""
SELECT a.id AS attempt_id, a.lane_id, l.dlq_id, l.attempts - l.attempts_before_release AS attempts, a.run_id,
       a.breaker_id,
       l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND NOT EXISTS (
            SELECT FROM redrive_run r WHERE r.id = l.run_id AND r.kind = 'automatic') AS spent, {RULE_BACKOFF}
  FROM redrive_attempt a JOIN redrive_letter l ON l.id = a.letter_id JOIN redrive_dlq d ON d.id = l.dlq_id
  LEFT JOIN redrive_rule u ON u.id = l.rule_id LEFT JOIN redrive_rate_class c ON c.id = l.rate_class_id
 WHERE a.id = ANY(%(attempts)b::bigint[]) ORDER BY a.id
"""  # noqa: S608  # the inserted text is a constant

# If both success and failure were reported, the attempt failed: to send its letter again loses nothing. Only the newest
# attempt changes its letter, unless its message came back. A closed attempt keeps its outcome; `counts_as_failure`
# records a later report. A person's decision about a letter is kept. If a letter has no body, a reported failure
# changes nothing until its message comes back. A last attempt whose reply was lost is open and counts as a failure for
# the breaker. If its success is reported, its outcome is `unknown`, as if it had been closed before: `acknowledged`
# together with `counts_as_failure` means that a failure was reported (`REPORTED_FAILED`).
_BELIEVE = f"""
WITH asked AS (
    SELECT * FROM unnest(%(attempts)b::bigint[], %(dues)b::float8[], %(spent)b::bool[]) AS q(attempt_id, due, spent)
), word AS (
    SELECT a.id, a.letter_id, a.outcome AS was, q.due, q.spent, said.failed
      FROM asked q JOIN redrive_attempt a ON a.id = q.attempt_id JOIN redrive_letter l ON l.id = a.letter_id
     CROSS JOIN LATERAL (
            SELECT bool_or(r.verdict = 'failed') AS failed FROM ({ATTEMPT_REPORTS}) r
              WHERE r.verdict <> 'retrying') said
     WHERE said.failed IS NOT NULL AND a.returned_at IS NULL AND (NOT said.failed OR l.body_deleted_at IS NULL)
       AND NOT EXISTS (SELECT FROM redrive_attempt later WHERE later.letter_id = a.letter_id AND later.no > a.no
                          AND later.outcome IS DISTINCT FROM 'not_sent')
       AND (a.closed_at IS NULL OR a.outcome = 'unknown'
            OR (a.outcome IN ('accepted', 'absent', 'acknowledged', 'silent') AND a.counts_as_failure IS NOT TRUE))
), closed AS (
    UPDATE redrive_attempt a
       SET outcome = coalesce(a.outcome, CASE WHEN w.failed THEN 'failed' WHEN a.counts_as_failure THEN 'unknown'
                                              ELSE 'acknowledged' END),
           closed_at = coalesce(a.closed_at, redrive_now()), holds_lane = false,
           counts_as_failure = CASE WHEN a.outcome = 'unknown' OR a.counts_as_failure THEN a.counts_as_failure
                                    ELSE w.failed END
      FROM word w WHERE a.id = w.id
    RETURNING a.id, a.letter_id, w.was, w.was IS NULL AS was_open, w.failed, w.due, w.spent
), {DECIDE_IF_FINISHED}, moved AS (
    UPDATE redrive_letter l
       SET epoch = l.epoch + c.failed::int, frees_lane = false, presumed = false,
           blocked_reason = CASE WHEN c.failed AND NOT c.ends THEN l.blocked_reason ELSE '' END,
           state = CASE WHEN NOT c.failed THEN 'delivered' WHEN l.state = 'waiting' OR {PERSON_DECIDES} THEN l.state
                        WHEN c.ends THEN 'parked' ELSE 'waiting' END,
           due_at = CASE WHEN NOT c.failed OR {PERSON_DECIDES} THEN NULL
                         WHEN l.state = 'waiting' THEN l.due_at
                         WHEN NOT c.ends THEN redrive_now() + make_interval(secs => c.due) END,
           reason = CASE WHEN NOT c.failed OR l.state = 'waiting' THEN '' WHEN {PERSON_DECIDES} THEN l.reason
                         WHEN c.ends THEN 'attempts_spent' ELSE '' END,
           detail = CASE WHEN NOT c.failed THEN '' WHEN l.state = 'waiting' OR {PERSON_DECIDES} THEN l.detail
                         WHEN c.ends THEN 'its consumer reported that its last attempt failed' ELSE '' END,
           finished_at = CASE WHEN l.state = 'delivered' AND NOT c.failed OR {PERSON_DECIDES} AND c.failed
                              THEN l.finished_at
                              WHEN NOT c.failed OR (c.ends AND l.state <> 'waiting') THEN redrive_now() END
      FROM judged c
     WHERE l.id = c.letter_id
       AND CASE WHEN l.state IN ('sending', 'awaiting', 'delivered') THEN true
                WHEN c.failed THEN l.state IN ('waiting', 'parked', 'discarded')
                WHEN l.state = 'parked' THEN (c.was = 'silent' AND l.reason = 'no_answer')
                                          OR (coalesce(c.was, 'unknown') = 'unknown' AND l.reason = 'attempts_spent')
                ELSE c.was = 'unknown' AND l.state = 'waiting' AND l.attempts_before_release < l.attempts END
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE WHEN NOT c.failed THEN 'delivered' WHEN l.state = 'discarded' THEN 'discarded'
                   ELSE 'free' END AS claim, c.until
), {FREE_FORMER_CLAIMS}, {RAISE_HIGHEST_SENT}, {CLAIMS_AND_COPIES}
SELECT * FROM copies
"""  # noqa: S608  # as above

# Targets whose DLQ is watched are left out: a message's absence from that DLQ is better evidence than a missing report.
_UNWATCHED: Final[LiteralString] = """
SELECT a.id AS attempt_id, a.lane_id, a.breaker_id, a.run_id
  FROM redrive_target t LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id
  JOIN redrive_attempt a ON a.target_id = t.id
 WHERE (w.id IS NULL OR w.mode = 'observe') AND a.closed_at IS NULL AND a.deadline <= redrive_now() AND {but}
 ORDER BY a.lane_id LIMIT %(limit)b
"""
_OVERDUE = _UNWATCHED.format(but="t.proof = 'acknowledged' AND a.taken_at IS NOT NULL")
# The last attempts of parked letters whose result is unknown, and whose messages can no longer come back.
_OUTLASTED = _UNWATCHED.format(but="a.taken_at IS NULL")

_SILENT = f"""
WITH closed AS (
    UPDATE redrive_attempt a SET outcome = 'silent', closed_at = redrive_now(), holds_lane = false
     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at) = 0 AND a.taken_at IS NOT NULL
    RETURNING a.letter_id, a.deadline
), moved AS (
    UPDATE redrive_letter l
       SET state = 'parked', reason = 'no_answer', blocked_reason = '', frees_lane = false, finished_at = redrive_now(),
           due_at = NULL,
           detail = 'its consumer reported nothing until '
                    || to_char(c.deadline AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
      FROM closed c WHERE l.id = c.letter_id AND l.state = 'awaiting'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, 'free' AS claim,
              {COPY_UNTIL} AS until
), {CLAIMS_AND_COPIES}
SELECT * FROM copies
"""  # noqa: S608  # as above


_GIVE_UP = f"""
WITH closed AS (
    UPDATE redrive_attempt a SET outcome = 'unknown', closed_at = redrive_now(), holds_lane = false
     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at, a.taken_at) = 0
    RETURNING a.letter_id
), judged AS (
    SELECT l.id AS letter_id, {COPY_UNTIL} AS until FROM closed c JOIN redrive_letter l ON l.id = c.letter_id
), moved AS (
    SELECT l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, 'free' AS claim, c.until
      FROM judged c JOIN redrive_letter l ON l.id = c.letter_id WHERE l.state = 'parked'
), {FREE_FORMER_CLAIMS}, {CLAIMS_AND_COPIES}
SELECT * FROM copies
"""  # noqa: S608  # as above

# Whether an attempt waits for evidence, a report or a deadline, or a report arrived a moment ago.
_AWAITED = """
SELECT EXISTS (SELECT FROM redrive_target t
                WHERE (t.watched_by_id IS NOT NULL OR t.proof = 'acknowledged')
                  AND EXISTS (SELECT FROM redrive_attempt a WHERE a.target_id = t.id AND a.closed_at IS NULL
                                 AND num_nonnulls(a.taken_at, a.deadline) > 0))
    OR coalesce((SELECT received_at FROM redrive_report ORDER BY received_at DESC LIMIT 1)
                > redrive_now() - make_interval(secs => %(lately)b::float8), false) AS found
"""


@dataclass(frozen=True, slots=True)
class ReportedAttempt:
    """An attempt that a consumer reported on, with the values that decide whether its letter is sent again."""

    attempt_id: int
    lane_id: int
    dlq_id: int
    attempts: int  #: counted attempts since a person released the letter
    run_id: int | None
    breaker_id: int | None
    spent: bool  #: if this attempt failed, no attempt is left, so the letter is parked without further checks
    backoff_base: float | None  #: the backoff of the letter's rule or rate class; None: they have none
    backoff_cap: float | None
    backoff_jitter: str | None


def reported_attempts(attempts: Collection[int]) -> list[ReportedAttempt]:
    """Return, for each of these attempts, the values that decide whether its letter is sent again, sorted by id."""
    return rows.fetch(ReportedAttempt, _NAMED, {"attempts": list(attempts)})


def apply_reports(attempts: Sequence[int], dues: Sequence[float], spent: Sequence[bool]) -> list[Deletable]:
    """Apply all reports about these attempts to their letters; return the messages that may be deleted from DLQs.

    A repeated call changes nothing. The caller has locked the letters' lanes. `dues`: for each attempt, after how many
    seconds its letter is sent again if the attempt failed. `spent`: for each attempt, whether its letter has no further
    attempt, and so is parked, if the attempt failed.
    """
    return rows.fetch(Deletable, _BELIEVE, {"attempts": list(attempts), "dues": list(dues), "spent": list(spent)})


def overdue_attempts(*, limit: int) -> list[OpenAttempt]:
    """Return up to `limit` attempts, sorted by lane, whose consumer did not report in time.

    Attempts whose outcome a watched DLQ can show are left out.
    """
    return rows.fetch(OpenAttempt, _OVERDUE, {"limit": limit})


def close_silent(attempts: Sequence[int]) -> list[Deletable]:
    """Close attempts whose consumer did not report in time, and park their letters.

    Return the messages that may be deleted from DLQs. The caller has locked the letters' lanes.
    """
    return rows.fetch(Deletable, _SILENT, {"attempts": list(attempts)})


def outlasted_unwatched_attempts(*, limit: int) -> list[OpenAttempt]:
    """Return up to `limit` attempts with an unknown result whose messages can no longer come back, sorted by lane.

    Each is the last attempt of a parked letter. Attempts whose outcome a watched DLQ can show are left out.
    """
    return rows.fetch(OpenAttempt, _OUTLASTED, {"limit": limit})


def close_unknown(attempts: Sequence[int]) -> list[Deletable]:
    """Close attempts of parked letters with outcome unknown; return the messages that may be deleted from DLQs.

    Then other letters of the same lanes, or with the same idempotency keys, may be sent. The caller has locked the
    lanes.
    """
    return rows.fetch(Deletable, _GIVE_UP, {"attempts": list(attempts)})


def has_open_outcomes() -> bool:
    """Return whether any letter awaits its outcome, or a report arrived in the last 60 s (`RECENT_SECONDS`)."""
    return rows.value(bool, _AWAITED, {"lately": RECENT_SECONDS})
