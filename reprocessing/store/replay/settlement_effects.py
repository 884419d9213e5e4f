"""Parts of SQL statements that change letters. The parts change the letters' claims, copies and lanes accordingly.

A claim reserves an idempotency key at a target for one letter. A copy is a captured message that is still in its DLQ.
A CTE is a named part of a statement (`WITH`).
"""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store.ordering.lane_head import first_letters

#: For a target t: seconds for which a copy may be in t after an attempt with unknown outcome. If t has no window: SQS's
#: deduplication interval (300 s), t's visibility timeout or t's timeout, whichever is longest (docs/adr/0031).
#: `Target.copy_window` is the same rule in Python.
COPY_WINDOW: Final[LiteralString] = """
(CASE WHEN t.window > 0 OR t.proof <> 'accepted' THEN t.window
      ELSE greatest(300, t.visibility, t.timeout) END)
"""

#: For an attempt a with unknown outcome at a target t: until when a copy of the letter may be in t, or come back.
COPY_ENDS: Final[LiteralString] = f"coalesce(a.deadline, a.closed_at + make_interval(secs => {COPY_WINDOW}))"

#: For a letter l: until when a copy of an attempt with unknown outcome may be in a target, or come back; null: no copy.
COPY_UNTIL: Final[LiteralString] = f"""
(SELECT max({COPY_ENDS}) FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
  WHERE a.letter_id = l.id AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now())
"""  # noqa: S608  # the inserted texts are constants

_CLAIMS: Final[LiteralString] = """
claims AS (
    UPDATE redrive_claim c
       SET state = CASE WHEN m.claim = 'free' AND m.until IS NOT NULL THEN 'held' ELSE m.claim END,
           until = CASE m.claim WHEN 'held' THEN coalesce(m.until, c.until) WHEN 'delivered' THEN NULL ELSE m.until END
      FROM moved m
     WHERE m.idempotency_key IS NOT NULL AND m.claim IS NOT NULL AND c.target_id = m.target_id
       AND c.key_space = m.dlq_id::text AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8'))
       AND c.letter_id = m.id
)
"""
_OF_FINISHED_LETTERS: Final[LiteralString] = """
m.state IN ('delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id = m.dlq_id
AND c.message_id = m.message_id AND c.state NOT IN ('delete', 'gone')
"""

# Changes the claims of letters, and marks the copies of finished letters for deletion (`copies`). Add it after a CTE
# `moved` with id, dlq_id, message_id, target_id, idempotency_key, state, claim, until. A copy of the letter may be in
# its target up to the time `until`. So the key stays claimed up to then, even for a discarded letter: else another
# letter with the key would be sent, too. NOT IN keeps the planner from the index of all held copies: copies are found
# by primary key.
CLAIMS_AND_COPIES: Final[LiteralString] = f"""
{_CLAIMS}, copies AS (
    UPDATE redrive_dlq_copy c SET state = 'delete' FROM moved m WHERE {_OF_FINISHED_LETTERS}
    RETURNING c.dlq_id, c.message_id, c.handle
)
"""  # noqa: S608  # the inserted texts are constants

#: `CLAIMS_AND_COPIES` for callers that delete the returned copies at once. It does not mark the copies for deletion,
#: which saves an update of each copy. If the caller is killed first, the copies stay `held`, and a sweep marks them.
CLAIMS_AND_DELETABLE: Final[LiteralString] = f"""
{_CLAIMS}, copies AS (
    SELECT c.dlq_id, c.message_id, c.handle FROM moved m JOIN redrive_dlq_copy c ON {_OF_FINISHED_LETTERS}
)
"""  # noqa: S608  # as above

# Frees the claims that a letter has for a former target or key, after a person changed the letter's target or key. Add
# it after a CTE `judged` with letter_id, until.
FREE_FORMER_CLAIMS: Final[LiteralString] = """
left_behind AS (
    UPDATE redrive_claim c SET state = CASE WHEN x.until IS NULL THEN 'free' ELSE 'held' END, until = x.until
      FROM judged x JOIN redrive_letter l ON l.id = x.letter_id
     WHERE c.letter_id = x.letter_id AND c.state = 'held'
       AND (c.target_id <> l.target_id OR c.key_hash <> sha256(convert_to(coalesce(l.idempotency_key, ''), 'UTF8')))
)
"""

#: True of a target t if a lane's next letter waits until a last attempt with unknown outcome can no longer come back.
HOLDS_LANE: Final[LiteralString] = "(t.proof <> 'accepted' AND t.advance = 'settled')"

# Decides whether letters whose attempts were closed are finished. Add it after a CTE `closed` with id, letter_id,
# spent, was_open. It adds three columns. `until`: until when a copy of another attempt with unknown outcome may come
# back; the key stays claimed until then. `ends`: no attempt is left, and no copy of another attempt holds the lane.
# `reopens`: the letter was parked while its last attempt held the lane, and a copy of another attempt may come back.
# Without LATERAL, a planner that has no statistics would read all attempts.
DECIDE_IF_FINISHED: Final[LiteralString] = f"""
judged AS (
    SELECT c.*, u.until, c.spent AND NOT coalesce(u.outlasts, false) AS ends,
           c.was_open AND coalesce(u.outlasts, false) AS reopens
      FROM closed c CROSS JOIN LATERAL (
            SELECT max({COPY_ENDS}) AS until, bool_or({HOLDS_LANE}) AS outlasts
              FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
             WHERE a.letter_id = c.letter_id AND a.id NOT IN (SELECT id FROM closed)
               AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()) u
)
"""  # noqa: S608  # the inserted text is a constant

_RAISE_HIGHEST_SENT: Final[LiteralString] = """
passed AS (
    UPDATE redrive_lane n SET highest_sent_sequence = f.sequence
      FROM (SELECT l.lane_id, max(l.sequence) AS sequence
              FROM {went} w JOIN redrive_letter l ON l.id = w.letter_id GROUP BY l.lane_id) f
     WHERE n.id = f.lane_id AND coalesce(n.highest_sent_sequence < f.sequence, f.sequence IS NOT NULL)
)
"""

# Raises the highest sent sequence of lanes, so that an earlier letter that is captured later is stale. An attempt that
# was reported was sent, even if its worker died before it recorded the send. Add it after a CTE `closed` with
# letter_id, was_open; the lanes must be locked.
RAISE_HIGHEST_SENT: Final[LiteralString] = _RAISE_HIGHEST_SENT.format(
    went="(SELECT letter_id FROM closed WHERE was_open)"
)

#: Like `RAISE_HIGHEST_SENT`, for letters whose attempts are not in the database. Add it after a CTE `newest` with
#: letter_id.
RAISE_HIGHEST_SENT_NEWEST: Final[LiteralString] = _RAISE_HIGHEST_SENT.format(went="newest")

#: True of a letter l and its `judged` row c if a person must decide about the letter, or has decided.
PERSON_DECIDES: Final[LiteralString] = "(l.state = 'discarded' OR (l.state = 'parked' AND NOT c.reopens))"

#: True of an attempt a if its consumer reported a failure, while a was open or after a was closed with another outcome.
REPORTED_FAILED: Final[LiteralString] = """
coalesce(a.outcome = 'failed' OR (a.counts_as_failure AND a.outcome IN ('accepted', 'absent', 'acknowledged',
       'silent')), false)
"""

#: True of a claim c if another letter may claim its key. This needs three conditions: the time of c is over; the letter
#: of c is not the head of its lane with this key, and has no open attempt; no copy of an attempt with unknown outcome
#: can come back.
CLAIM_HAS_LAPSED: Final[LiteralString] = f"""
(coalesce(c.state = 'held', false) AND c.until <= redrive_now() AND c.letter_id IS DISTINCT FROM (
    SELECT CASE WHEN e.target_id = c.target_id
                 AND sha256(convert_to(coalesce(e.idempotency_key, ''), 'UTF8')) = c.key_hash THEN e.id END
      FROM {first_letters("e", "(SELECT w.lane_id FROM redrive_letter w WHERE w.id = c.letter_id)")})
  AND NOT EXISTS (
    SELECT FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
     WHERE a.letter_id = c.letter_id AND (num_nonnulls(a.closed_at) = 0 OR (
            a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()))))
"""  # noqa: S608  # as above
