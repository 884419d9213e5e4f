"""Record outcomes of attempts; change their letters, reserved idempotency keys (claims) and copies accordingly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.lifecycle import FINISHED_STATES, AttemptOutcome, LetterState, ParkedReason
from reprocessing.store import rows
from reprocessing.store.replay.settlement_effects import (
    CLAIMS_AND_COPIES,
    CLAIMS_AND_DELETABLE,
    COPY_UNTIL,
    COPY_WINDOW,
    HOLDS_LANE,
)

#: The reason that people see while a lane waits because `put_off_letters` has delayed its head.
WAITS_FOR_COPY: Final = "its first message is not sent again, and is closed when no copy of the message can come back"


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of an attempt, and the state that its letter gets."""

    attempt_id: int
    letter_id: int
    #: None: the attempt stays open, because the target accepted the letter and the outcome is not known yet
    outcome: AttemptOutcome | None
    state: LetterState
    claim: str  #: the new state of the letter's claim: held, free, delivered
    sent_message_id: str | None = None  #: the message id that the target gave
    deadline: float | None = None  #: seconds from now in which the message may come back, or be in its target
    due: float | None = None  #: seconds from now until the letter may be sent again
    detail: str | None = None
    reason: ParkedReason | None = None
    counted: bool = True  #: the attempt counts against the DLQ's limit
    known: bool = False  #: the outcome is a known failure, so that the letter's `epoch` is raised
    frees_lane: bool = False  #: the lane's next letter need not wait for this letter's outcome
    #: whether the attempt counts as a failure (True) or success (False) of the target; None: neither, or not known
    counts_as_failure: bool | None = None
    taken: bool = False  #: the target accepted the message


@dataclass(frozen=True, slots=True)
class Deletable:
    """A captured message that may now be deleted from its DLQ, with its receipt handle."""

    dlq_id: int
    message_id: str
    handle: str


# `num_nonnulls`, here and in other statements, keeps the planner from the partial index of open attempts, which it
# would read for each attempt.
_SETTLE = f"""
WITH fate AS (
    SELECT * FROM unnest(
        %(attempt_id)b::bigint[], %(letter_id)b::bigint[], %(outcome)b::text[], %(state)b::text[], %(claim)b::text[],
        %(sent_message_id)b::text[], %(deadline)b::float8[], %(due)b::float8[], %(detail)b::text[], %(reason)b::text[],
        %(counted)b::bool[], %(known)b::bool[], %(frees_lane)b::bool[], %(counts_as_failure)b::bool[],
               %(taken)b::bool[])
    AS f(attempt_id, letter_id, outcome, state, claim, sent_message_id, deadline, due, detail, reason, counted, known,
         frees_lane, counts_as_failure, taken)
), closed AS (
    UPDATE redrive_attempt a
       SET sent_message_id = coalesce(a.sent_message_id, f.sent_message_id), outcome = f.outcome, detail = f.detail,
           taken_at = CASE WHEN f.taken THEN redrive_now() END,
           deadline = redrive_now() + make_interval(secs => f.deadline),
           closed_at = CASE WHEN f.outcome IS NOT NULL THEN redrive_now() END,
           holds_lane = f.outcome IS NULL AND NOT f.frees_lane, counts_as_failure = f.counts_as_failure
      FROM fate f WHERE a.id = f.attempt_id AND num_nonnulls(a.closed_at, a.taken_at) = 0
    RETURNING a.id, a.deadline
), moved AS (
    UPDATE redrive_letter l
       SET state = f.state, due_at = redrive_now() + make_interval(secs => f.due), frees_lane = f.frees_lane,
           attempts = l.attempts - (NOT f.counted)::int, not_sent = l.not_sent + (NOT f.counted)::int,
           epoch = l.epoch + f.known::int,
           reason = coalesce(f.reason, ''), detail = CASE WHEN f.reason IS NULL THEN '' ELSE coalesce(f.detail, '') END,
           presumed = false, finished_at = CASE WHEN f.state = ANY(%(finished)b::text[]) THEN redrive_now() END,
           blocked_reason = CASE WHEN f.state = ANY(%(finished)b::text[]) THEN '' ELSE l.blocked_reason END
      FROM fate f JOIN closed ON closed.id = f.attempt_id
     WHERE l.id = f.letter_id AND l.state = 'sending'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, f.claim,
              CASE WHEN f.state = 'parked' AND f.claim = 'held' THEN greatest(closed.deadline, {COPY_UNTIL})
                   ELSE closed.deadline END AS until
), {CLAIMS_AND_DELETABLE}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant

_EVIDENCE = """
UPDATE redrive_attempt a SET sent_message_id = e.sent_message_id
  FROM unnest(%(attempts)b::bigint[], %(sent)b::text[]) AS e(attempt_id, sent_message_id)
 WHERE a.id = e.attempt_id AND a.sent_message_id IS NULL AND e.sent_message_id IS NOT NULL
"""

# A FIFO target that drops a second send as a repetition answers with the message id of the first send.
_BACK = """
SELECT e.attempt_id
  FROM unnest(%(attempts)b::bigint[], %(sent)b::text[]) AS e(attempt_id, sent_message_id)
  JOIN redrive_attempt mine ON mine.id = e.attempt_id
 WHERE EXISTS (SELECT FROM redrive_attempt a
                WHERE a.sent_message_id = e.sent_message_id AND a.letter_id = mine.letter_id AND a.id <> mine.id
                  AND a.returned_at IS NOT NULL)
"""

# Delays a letter until no attempt with unknown outcome can come back: until the deadline of the attempt, if it has one,
# else until its end plus `COPY_WINDOW`.
_PUT_OFF = f"""
WITH unsure AS (
    SELECT u.letter_id, max(coalesce(u.deadline, u.closed_at + make_interval(secs => {COPY_WINDOW}))) AS until
      FROM redrive_attempt u JOIN redrive_target t ON t.id = u.target_id
     WHERE u.letter_id = ANY(%(letters)b::bigint[]) AND u.outcome = 'unknown' AND u.returned_at IS NULL AND {HOLDS_LANE}
     GROUP BY u.letter_id
)
UPDATE redrive_letter l SET due_at = u.until
  FROM unsure u JOIN redrive_letter w ON w.id = u.letter_id JOIN redrive_lane n ON n.id = w.lane_id
 WHERE l.id = u.letter_id AND l.state = 'waiting' AND u.until > redrive_now()
   AND (%(owned)b::bool OR n.phase <> 'leased')
RETURNING l.id AS letter_id
"""  # noqa: S608  # the inserted text is a constant

_CLOSE = f"""
WITH fate AS (
    SELECT * FROM unnest(%(letter_id)b::bigint[], %(state)b::text[], %(reason)b::text[], %(detail)b::text[],
                         %(original)b::bigint[]) AS f(letter_id, state, reason, detail, original)
), moved AS (
    UPDATE redrive_letter l
       SET state = f.state, reason = coalesce(f.reason, ''), detail = coalesce(f.detail, ''), due_at = NULL,
           duplicate_of_id = f.original, finished_at = redrive_now(), frees_lane = false, blocked_reason = ''
      FROM fate f WHERE l.id = f.letter_id AND l.state = ANY(%(from)b::text[])
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE l.state WHEN 'discarded' THEN 'discarded' WHEN 'parked' THEN 'free' END AS claim,
              {COPY_UNTIL} AS until
), {CLAIMS_AND_COPIES}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant

_DELIVER = f"""
WITH closed AS (
    UPDATE redrive_attempt a SET outcome = %(outcome)b, closed_at = redrive_now(), holds_lane = false,
           counts_as_failure = false
     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at) = 0 AND a.taken_at IS NOT NULL
       AND NOT EXISTS (SELECT FROM redrive_global_stop WHERE id = 2)  -- hold after a restore: returns are unknown
    RETURNING a.letter_id
), moved AS (
    UPDATE redrive_letter l
       SET state = 'delivered', presumed = %(presumed)b, frees_lane = false, finished_at = redrive_now(),
           blocked_reason = ''
      FROM closed c WHERE l.id = c.letter_id AND l.state = 'awaiting'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, 'delivered' AS claim,
              NULL::timestamptz AS until
), {CLAIMS_AND_DELETABLE}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant


def settle_attempts(fates: Sequence[Settlement]) -> list[Deletable]:
    """Record the outcomes of attempts; return the captured messages to delete from DLQs.

    The caller has a lease on the lanes of the attempts.
    """
    return rows.fetch(Deletable, _SETTLE, {**rows.arrays(Settlement, fates), "finished": list(FINISHED_STATES)})


def record_message_ids(attempts: Sequence[int], sent: Sequence[str | None]) -> None:
    """Record the message ids that targets gave to attempts, although the caller no longer leases their lanes.

    A message that comes back is recognised by its message id.
    """
    rows.execute(_EVIDENCE, {"attempts": list(attempts), "sent": list(sent)})


def returned_attempts(sent: Mapping[int, str]) -> set[int]:
    """Return the ids of attempts whose message a FIFO target dropped, as a repetition of a message that came back.

    A FIFO target that drops a repeated send answers with the message id of the earlier send. No second message will
    come back then. `sent`: the message id that the target gave, by attempt id. The caller has locked the lanes.
    """
    return set(rows.column(int, _BACK, {"attempts": list(sent), "sent": list(sent.values())}))


@dataclass(frozen=True, slots=True)
class LetterClosing:
    """A letter to park, discard or close as a duplicate (`state`): it is not sent again.

    `original`: the id of the delivered letter, if this letter is a duplicate.
    """

    letter_id: int
    state: LetterState
    reason: ParkedReason | None = None
    detail: str | None = None
    original: int | None = None


def put_off_letters(letters: Sequence[int], *, owned: bool = True) -> set[int]:
    """Delay queued letters whose earlier message may still come back; return the ids of the delayed letters.

    A letter is delayed until its message can no longer come back. It keeps its lane and idempotency key. Only letters
    for targets whose lanes wait for outcomes (`HOLDS_LANE`) are delayed. The caller has locked the lanes. `owned`: the
    caller has a lease on the lanes; if false, letters of leased lanes are not changed.
    """
    return set(rows.column(int, _PUT_OFF, {"letters": list(letters), "owned": owned}))


def close_letters(
    closings: Sequence[LetterClosing], *, out_of: Sequence[LetterState] = (LetterState.WAITING,)
) -> list[Deletable]:
    """Park letters, discard them, or close them as duplicates; return the captured messages to delete from DLQs.

    Only letters in one of the states `out_of` are changed. The caller has locked the lanes.
    """
    return rows.fetch(Deletable, _CLOSE, {**rows.arrays(LetterClosing, closings), "from": list(out_of)})


def presume_delivered(attempts: Sequence[int]) -> list[Deletable]:
    """Close attempts whose messages did not come back, and presume their letters delivered.

    Return the captured messages to delete from DLQs. The caller has locked the lanes.
    """
    known = {"outcome": AttemptOutcome.ABSENT, "presumed": True}
    return rows.fetch(Deletable, _DELIVER, {"attempts": list(attempts), **known})


def deliver_accepted(attempts: Sequence[int]) -> list[Deletable]:
    """Close attempts of targets for which acceptance is enough evidence, and mark their letters as delivered.

    Return the captured messages to delete from DLQs. The caller has locked the lanes.
    """
    known = {"outcome": AttemptOutcome.ACCEPTED, "presumed": False}
    return rows.fetch(Deletable, _DELIVER, {"attempts": list(attempts), **known})
