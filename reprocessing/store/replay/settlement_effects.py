"""What follows for claims and copies when letters move: a part of every statement that moves them."""

from __future__ import annotations

from typing import Final, LiteralString

#: Of a target t: seconds for which a copy may be in it whose attempt ended unknown. Where a target has no window of its
#: own, SQS's deduplication interval, or what an answer or a receive may take, if that is longer (docs/adr/0031).
#: `Target.copy_window` says the same.
COPY_WINDOW: Final[LiteralString] = """
(CASE WHEN t.window > 0 OR t.proof <> 'accepted' THEN t.window
      ELSE greatest(300, t.visibility, t.timeout) END)
"""

#: Of an attempt a to a target t, which ended unknown: until when its copy may be in the target, or come back.
COPY_ENDS: Final[LiteralString] = f"coalesce(a.deadline, a.closed_at + make_interval(secs => {COPY_WINDOW}))"

#: Of a letter l: until when a copy of it may be in a target, or come back, since an attempt ended unknown; null: none.
COPY_UNTIL: Final[LiteralString] = f"""
(SELECT max({COPY_ENDS}) FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
  WHERE a.letter_id = l.id AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now())
"""  # noqa: S608  # the inserted texts are constants

# To be put behind a `moved` of: id, dlq_id, message_id, target_id, idempotency_key, state, claim, until.
# `until`: when a copy of it may be in its target no more. No key is free before that, whatever the lane does: another
# letter with this key would be sent beside the copy. A discarded one's says so, too: a person may release a twin.
# Claims and copies are reached by their primary keys: `held` said in other words keeps the planner from the index of
# all that a dlq holds. `copies` are those that may now be deleted from the dlq.
AFTERMATH: Final[LiteralString] = """
claims AS (
    UPDATE redrive_claim c
       SET state = CASE WHEN m.claim = 'free' AND m.until IS NOT NULL THEN 'held' ELSE m.claim END,
           until = CASE m.claim WHEN 'held' THEN coalesce(m.until, c.until) WHEN 'delivered' THEN NULL
                                ELSE m.until END
      FROM moved m
     WHERE m.idempotency_key IS NOT NULL AND m.claim IS NOT NULL AND c.target_id = m.target_id
       AND c.key_space = m.dlq_id::text AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8'))
       AND c.letter_id = m.id
), copies AS (
    UPDATE redrive_custody c SET state = 'delete'
      FROM moved m
     WHERE m.state IN ('delivered', 'parked', 'duplicate', 'discarded') AND c.dlq_id = m.dlq_id
       AND c.message_id = m.message_id AND c.state NOT IN ('delete', 'gone')
    RETURNING c.dlq_id, c.message_id, c.handle
)
"""

# To be put behind a `judged` of: letter_id, until. What was claimed for an attempt whose letter goes elsewhere by now,
# or under another key, since a person said so while it was out.
LEFT_BEHIND: Final[LiteralString] = """
left_behind AS (
    UPDATE redrive_claim c SET state = CASE WHEN x.until IS NULL THEN 'free' ELSE 'held' END, until = x.until
      FROM judged x JOIN redrive_letter l ON l.id = x.letter_id
     WHERE c.letter_id = x.letter_id AND c.state = 'held'
       AND (c.target_id <> l.target_id
            OR c.key_hash <> sha256(convert_to(coalesce(l.idempotency_key, ''), 'UTF8')))
)
"""

#: Of a target t: what it was sent, and perhaps has, may still be on its way when a letter's last attempt has ended
#: unknown, and the next letter of the lane waits for that.
OUTLASTS: Final[LiteralString] = "(t.proof <> 'accepted' AND t.advance = 'settled')"

# To be put behind a `closed` of: id, letter_id, spent, was_open. Of each letter, until when a copy of another attempt,
# which ended unknown, may come back (its key stays held so long), and whether it `ends`: where its lane waits for such
# a copy, whoever finds that no attempt is left sees to it; so does it where the letter was parked, its last attempt
# open, which held lane and key: it `reopens`. Asked of each by itself: a planner without statistics would read all
# attempts.
JUDGED: Final[LiteralString] = f"""
judged AS (
    SELECT c.*, u.until, c.spent AND NOT coalesce(u.outlasts, false) AS ends,
           c.was_open AND coalesce(u.outlasts, false) AS reopens
      FROM closed c CROSS JOIN LATERAL (
            SELECT max({COPY_ENDS}) AS until, bool_or({OUTLASTS}) AS outlasts
              FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
             WHERE a.letter_id = c.letter_id AND a.id NOT IN (SELECT id FROM closed)
               AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()) u
)
"""  # noqa: S608  # the inserted text is a constant

_PASSED: Final[LiteralString] = """
passed AS (
    UPDATE redrive_lane n SET passed_sequence = f.sequence
      FROM (SELECT l.lane_id, max(l.sequence) AS sequence
              FROM {went} w JOIN redrive_letter l ON l.id = w.letter_id GROUP BY l.lane_id) f
     WHERE n.id = f.lane_id AND coalesce(n.passed_sequence < f.sequence, f.sequence IS NOT NULL)
)
"""

# To be put behind a `closed` of: letter_id, was_open; the lanes are locked. An attempt that is told of went, though its
# worker may have died before it wrote so: what is earlier in the order, and turns up now, is stale.
PASSED: Final[LiteralString] = _PASSED.format(went="(SELECT letter_id FROM closed WHERE was_open)")

#: Likewise of a `newest` of letters whose attempts are forgotten, and came back.
PASSED_ONCE: Final[LiteralString] = _PASSED.format(went="newest")

#: Of a letter l and its `judged` c: it is a person's to decide about, or decided.
STAYS: Final[LiteralString] = "(l.state = 'discarded' OR (l.state = 'parked' AND NOT c.reopens))"

#: Of an attempt a: its consumer said that it failed, while it was open or after it had been closed as something else.
DENIED: Final[LiteralString] = """
coalesce(a.outcome = 'failed' OR (a.ill AND a.outcome IN ('accepted', 'absent', 'acknowledged', 'silent')), false)
"""

#: Of a claim c: whoever holds it waits behind another letter, which may be its twin and wait for it, or waits no more,
#: and neither is an attempt of it open, nor may the copy of an unknown one come back. The twin may have the key. A
#: holder that is the head of its lane is sent again there, under its own identity, and keeps it.
LAPSED: Final[LiteralString] = f"""
(coalesce(c.state = 'held', false) AND c.until <= redrive_now() AND c.letter_id IS DISTINCT FROM (
    SELECT CASE WHEN e.target_id = c.target_id
                 AND sha256(convert_to(coalesce(e.idempotency_key, ''), 'UTF8')) = c.key_hash THEN e.id END
      FROM redrive_letter e
     WHERE e.lane_id = (SELECT w.lane_id FROM redrive_letter w WHERE w.id = c.letter_id)
       AND e.state IN ('waiting', 'sending', 'awaiting') AND NOT e.lets_pass
     ORDER BY e.sequence, e.message_id LIMIT 1)
  AND NOT EXISTS (
    SELECT FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
     WHERE a.letter_id = c.letter_id AND (num_nonnulls(a.closed_at) = 0 OR (
            a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()))))
"""  # noqa: S608  # as above
