"""The statements that record what became of attempts and letters, with what follows for claims and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.lifecycle import FINISHED, AttemptOutcome, LetterState, ParkedReason
from reprocessing.store import rows
from reprocessing.store.replay.settlement_effects import AFTERMATH, COPY_UNTIL, COPY_WINDOW, OUTLASTS

#: Why a lane waits whose head was put off.
PUT_OFF: Final = "its head is not to be sent, and ends when a copy of it can come back no more"


@dataclass(frozen=True, slots=True)
class Fate:
    """What an attempt and its letter come to.

    Attributes:
        outcome: None leaves the attempt open: the target took it, and whether it worked is not known yet.
        deadline: seconds from now until when it may still come back, or be in its target.
        due: seconds from now until the letter may be tried again.
        claim: what the letter's claim becomes: held, free, delivered.
        counted: whether the attempt counts against the dlq's limit.
        known: the outcome is a known failure: the next attempt belongs to a new epoch.
        lets_pass: the next letter of the lane need not wait for this one's outcome.
        ill: it speaks against the target, or for it; None: nothing follows from it, or it is not known yet.
        taken: the target has it.
    """

    attempt_id: int
    letter_id: int
    outcome: AttemptOutcome | None
    state: LetterState
    claim: str
    sent_message_id: str | None = None
    deadline: float | None = None
    due: float | None = None
    detail: str | None = None
    reason: ParkedReason | None = None
    counted: bool = True
    known: bool = False
    lets_pass: bool = False
    ill: bool | None = None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Deletable:
    """A copy that may now be deleted from its dlq."""

    dlq_id: int
    message_id: str
    handle: str


# What is still open is asked in words that no partial index answers to: the planner would read all that is open for
# every attempt. Likewise below, and in the statements of copies.
_SETTLE = f"""
WITH fate AS (
    SELECT * FROM unnest(
        %(attempts)b::bigint[], %(letters)b::bigint[], %(outcomes)b::text[], %(states)b::text[], %(claims)b::text[],
        %(sent)b::text[], %(deadlines)b::float8[], %(dues)b::float8[], %(details)b::text[], %(reasons)b::text[],
        %(uncounted)b::int[], %(epochs)b::int[], %(passes)b::bool[], %(ills)b::bool[], %(takens)b::bool[])
    AS f(attempt_id, letter_id, outcome, state, claim, sent_message_id, deadline, due, detail, reason, uncounted,
         epoch, lets_pass, ill, taken)
), closed AS (
    UPDATE redrive_attempt a
       SET sent_message_id = coalesce(a.sent_message_id, f.sent_message_id), outcome = f.outcome, detail = f.detail,
           taken_at = CASE WHEN f.taken THEN redrive_now() END,
           deadline = redrive_now() + make_interval(secs => f.deadline),
           closed_at = CASE WHEN f.outcome IS NOT NULL THEN redrive_now() END,
           holds_lane = f.outcome IS NULL AND NOT f.lets_pass, ill = f.ill
      FROM fate f WHERE a.id = f.attempt_id AND num_nonnulls(a.closed_at, a.taken_at) = 0
    RETURNING a.id, a.deadline
), moved AS (
    UPDATE redrive_letter l
       SET state = f.state, due_at = redrive_now() + make_interval(secs => f.due), lets_pass = f.lets_pass,
           attempts = l.attempts - f.uncounted, not_sent = l.not_sent + f.uncounted, epoch = l.epoch + f.epoch,
           reason = coalesce(f.reason, ''), detail = CASE WHEN f.reason IS NULL THEN '' ELSE coalesce(f.detail, '') END,
           presumed = false, finished_at = CASE WHEN f.state = ANY(%(finished)b::text[]) THEN redrive_now() END,
           objection = CASE WHEN f.state = ANY(%(finished)b::text[]) THEN '' ELSE l.objection END
      FROM fate f JOIN closed ON closed.id = f.attempt_id
     WHERE l.id = f.letter_id AND l.state = 'sending'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, f.claim,
              CASE WHEN f.state = 'parked' AND f.claim = 'held' THEN greatest(closed.deadline, {COPY_UNTIL})
                   ELSE closed.deadline END AS until
), {AFTERMATH}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant

_EVIDENCE = """
UPDATE redrive_attempt a SET sent_message_id = e.sent_message_id
  FROM unnest(%(attempts)b::bigint[], %(sent)b::text[]) AS e(attempt_id, sent_message_id)
 WHERE a.id = e.attempt_id AND a.sent_message_id IS NULL AND e.sent_message_id IS NOT NULL
"""

# A FIFO target answers a resend that it swallows with the id of the first copy.
_BACK = """
SELECT e.attempt_id
  FROM unnest(%(attempts)b::bigint[], %(sent)b::text[]) AS e(attempt_id, sent_message_id)
  JOIN redrive_attempt mine ON mine.id = e.attempt_id
 WHERE EXISTS (SELECT FROM redrive_attempt a
                WHERE a.sent_message_id = e.sent_message_id AND a.letter_id = mine.letter_id AND a.id <> mine.id
                  AND a.returned_at IS NOT NULL)
"""

# Of a letter's attempts that ended unknown, the last that may come back says until when it rests. One that had a
# deadline held its lane until then.
_PUT_OFF = f"""
WITH unsure AS (
    SELECT u.letter_id, max(coalesce(u.deadline, u.closed_at + make_interval(secs => {COPY_WINDOW}))) AS until
      FROM redrive_attempt u JOIN redrive_target t ON t.id = u.target_id
     WHERE u.letter_id = ANY(%(letters)b::bigint[]) AND u.outcome = 'unknown' AND u.returned_at IS NULL AND {OUTLASTS}
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
    SELECT * FROM unnest(%(letters)b::bigint[], %(states)b::text[], %(reasons)b::text[], %(details)b::text[],
                         %(originals)b::bigint[])
    AS f(letter_id, state, reason, detail, original)
), moved AS (
    UPDATE redrive_letter l
       SET state = f.state, reason = coalesce(f.reason, ''), detail = coalesce(f.detail, ''), due_at = NULL,
           duplicate_of_id = f.original, finished_at = redrive_now(), lets_pass = false, objection = ''
      FROM fate f WHERE l.id = f.letter_id AND l.state = ANY(%(from)b::text[])
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE l.state WHEN 'discarded' THEN 'discarded' WHEN 'parked' THEN 'free' END AS claim,
              {COPY_UNTIL} AS until
), {AFTERMATH}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant

_ABSENT = f"""
WITH closed AS (
    UPDATE redrive_attempt a SET outcome = 'absent', closed_at = redrive_now(), holds_lane = false, ill = false
     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at) = 0 AND a.taken_at IS NOT NULL
       AND NOT EXISTS (SELECT FROM redrive_halt WHERE id = 2)  -- what came back since the backup is forgotten
    RETURNING a.letter_id
), moved AS (
    UPDATE redrive_letter l
       SET state = 'delivered', presumed = true, lets_pass = false, finished_at = redrive_now(), objection = ''
      FROM closed c WHERE l.id = c.letter_id AND l.state = 'awaiting'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, 'delivered' AS claim,
              NULL::timestamptz AS until
), {AFTERMATH}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant


def settle(fates: Sequence[Fate]) -> list[Deletable]:
    """Record the outcomes of attempts; the lanes are locked and the caller's. What was settled before stays as it is.

    Returns:
        The copies that may now be deleted from their dlqs.
    """
    values = {
        "attempts": [fate.attempt_id for fate in fates],
        "letters": [fate.letter_id for fate in fates],
        "outcomes": [fate.outcome for fate in fates],
        "states": [fate.state for fate in fates],
        "claims": [fate.claim for fate in fates],
        "sent": [fate.sent_message_id for fate in fates],
        "deadlines": [fate.deadline for fate in fates],
        "dues": [fate.due for fate in fates],
        "details": [fate.detail for fate in fates],
        "reasons": [fate.reason for fate in fates],
        "uncounted": [0 if fate.counted else 1 for fate in fates],
        "epochs": [int(fate.known) for fate in fates],
        "passes": [fate.lets_pass for fate in fates],
        "ills": [fate.ill for fate in fates],
        "takens": [fate.taken for fate in fates],
        "finished": list(FINISHED),
    }
    return rows.fetch(Deletable, _SETTLE, values)


def keep_evidence(attempts: Sequence[int], sent: Sequence[str | None]) -> None:
    """Note under which ids a target took letters whose lanes are no longer the caller's: a return will show them."""
    rows.execute(_EVIDENCE, {"attempts": list(attempts), "sent": list(sent)})


def are_back(sent: Mapping[int, str]) -> set[int]:
    """Those of these attempts, by the ids their target gave them, whose message has come back already.

    The target swallowed such a resend: nothing new is on its way, and nothing will come back. The lanes are locked.
    """
    return set(rows.column(int, _BACK, {"attempts": list(sent), "sent": list(sent.values())}))


@dataclass(frozen=True, slots=True)
class Closing:
    """A letter that ends without having been sent."""

    letter_id: int
    state: LetterState
    reason: ParkedReason | None = None
    detail: str | None = None
    original: int | None = None


def put_off(letters: Sequence[int], *, owned: bool = True) -> set[int]:
    """Those of these letters that wait, and of which a copy may come back yet, where the next letter waits for that.

    They are not to be closed before: they rest until it can come back no more, and keep lane and key so long. The lanes
    are locked; `owned`: they are the caller's, else those that somebody has leased are left alone.
    """
    return set(rows.column(int, _PUT_OFF, {"letters": list(letters), "owned": owned}))


def close(closings: Sequence[Closing], *, out_of: Sequence[LetterState] = (LetterState.WAITING,)) -> list[Deletable]:
    """Park, discard or close as duplicates letters that are in one of the states `out_of`; the lanes are locked."""
    values = {
        "letters": [one.letter_id for one in closings],
        "states": [one.state for one in closings],
        "reasons": [one.reason for one in closings],
        "details": [one.detail for one in closings],
        "originals": [one.original for one in closings],
        "from": list(out_of),
    }
    return rows.fetch(Deletable, _CLOSE, values)


def presume(attempts: Sequence[int]) -> list[Deletable]:
    """Close attempts as absent and presume their letters delivered; the lanes are locked."""
    return rows.fetch(Deletable, _ABSENT, {"attempts": list(attempts)})
