"""After a restore from a backup: find out what became of letters that were unfinished in the backup.

A person decides about each of these letters; the decisions are recorded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, LiteralString

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.maintenance.restore_doubt import Finding
from reprocessing.models.system import RestoreDecision
from reprocessing.store import rows
from reprocessing.store.maintenance.restore_hold import MAX_VISIBILITY
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.replay import settlement
from reprocessing.store.replay.settlement import Deletable, LetterClosing

# `gone`: the copy was invisible when the hold began. A capture that began when all copies were visible again emptied
# the DLQ and did not find the copy. So the copy was deleted because its letter was finished, or it expired (`dropped`).
_FOUND: Final[LiteralString] = """
CASE WHEN x.came_back IS NOT NULL THEN 'came_back'
     WHEN x.arrived THEN 'arrived'
     WHEN l.state IN ('sending', 'awaiting') AND (x.receives IS NULL OR c.receives > x.receives) THEN 'sent'
     WHEN x.receives IS NULL THEN 'no_copy'
     WHEN c.receives > x.receives THEN 'seen'
     WHEN d.drained_through >= h.since + %(hidden)b::interval
     THEN CASE WHEN l.expires_at > d.drained_through + %(margin)b::interval THEN 'gone' ELSE 'dropped' END
     ELSE 'hidden' END
"""

_TIMES: Final = {
    "hidden": MAX_VISIBILITY,
    "margin": timedelta(hours=2),
}  # the service deletes a copy an hour before it expires (`expiry_rescue`), so an absent copy may have expired

_OPEN: Final[LiteralString] = """
  FROM redrive_restore_doubt x JOIN redrive_letter l ON l.id = x.letter_id JOIN redrive_dlq d ON d.id = l.dlq_id
  JOIN redrive_global_stop h ON h.id = 2
  LEFT JOIN redrive_dlq_copy c ON c.dlq_id = l.dlq_id AND c.message_id = l.message_id
 WHERE x.word = '' AND l.finished_at IS NULL
"""

_TALLY = f"""
SELECT d.name AS dlq, {_FOUND} AS finding, count(*) AS n {_OPEN} GROUP BY 1, 2 ORDER BY 1, 2
"""  # the inserted texts are constants

_LETTERS = f"""
SELECT l.id AS letter_id, l.lane_id, d.name AS dlq, l.message_id, l.public_id::text AS public_id, l.state, l.sequence,
       {_FOUND} AS finding {_OPEN}"""  # the inserted texts are constants

_PAGE = f"""
{_LETTERS}
   AND x.letter_id > %(above)b AND (%(dlq)b::bigint IS NULL OR l.dlq_id = %(dlq)b::bigint)
 ORDER BY x.letter_id LIMIT %(limit)b
"""  # the inserted text is a constant

_THESE = f"""
{_LETTERS} AND x.letter_id = ANY(%(letters)b::bigint[])
 ORDER BY l.id FOR UPDATE OF l
"""  # the inserted text is a constant

# The outcome is unknown for letters that were being sent when the backup was made.
_CLOSE = """
UPDATE redrive_attempt a
   SET outcome = 'unknown', closed_at = redrive_now(), holds_lane = false,
       detail = coalesce(a.detail, 'PostgreSQL was restored from a backup: the outcome is not known')
 WHERE a.letter_id = ANY(%(letters)b::bigint[]) AND num_nonnulls(a.closed_at) = 0
"""

# A letter that has no attempt left gets one more attempt, as after a release by a person.
_AGAIN = """
UPDATE redrive_letter l
   SET state = 'waiting', frees_lane = false,
       attempts_before_release = greatest(l.attempts_before_release, l.attempts - l.spared - d.max_attempts + 1),
       due_at = CASE WHEN l.state = 'waiting' THEN l.due_at ELSE redrive_now() END
  FROM redrive_dlq d
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state IN ('waiting', 'sending', 'awaiting') AND d.id = l.dlq_id
"""

_DELIVERED = """
WITH moved AS (
    UPDATE redrive_letter l
       SET state = 'delivered', presumed = true, finished_at = redrive_now(), due_at = NULL, frees_lane = false,
           blocked_reason = '', detail = %(detail)b::text
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.body_hash
), claims AS (
    INSERT INTO redrive_claim AS c (target_id, key_space, key_hash, letter_id, state, body_hash)
    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,
           sha256(convert_to(idempotency_key, 'UTF8')), id, 'delivered', body_hash
      FROM moved WHERE idempotency_key IS NOT NULL AND idempotency_key <> message_id AND target_id IS NOT NULL
     ORDER BY target_id, dlq_id, idempotency_key, id
    ON CONFLICT (target_id, key_space, key_hash) DO UPDATE
       SET state = 'delivered', letter_id = excluded.letter_id, body_hash = excluded.body_hash, until = NULL
     WHERE c.state IN ('free', 'held')
)
UPDATE redrive_dlq_copy c SET state = 'delete'
  FROM moved m
 WHERE c.dlq_id = m.dlq_id AND c.message_id = m.message_id AND c.state NOT IN ('delete', 'gone')
RETURNING c.dlq_id, c.message_id, c.handle
"""

_RECORD = """
WITH said AS (
    UPDATE redrive_restore_doubt x SET word = %(word)b::text, decided_at = redrive_now()
      FROM unnest(%(letters)b::bigint[], %(findings)b::text[], %(states)b::text[]) AS s(letter_id, finding, state)
     WHERE x.letter_id = s.letter_id AND x.word = ''
    RETURNING x.letter_id, s.finding, s.state
)
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT 'changed', l.id, l.dlq_id, %(by)b::text, %(reason)b::text, redrive_now(),
       jsonb_build_object('state', s.state, 'after_a_restore', s.finding),
       jsonb_build_object('state', l.state, 'after_a_restore', %(word)b::text)
  FROM said s JOIN redrive_letter l ON l.id = s.letter_id ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class DoubtedLetter:
    """A letter that waits for a person's decision after a restore, and what the database shows about it (`finding`)."""

    letter_id: int
    lane_id: int | None
    dlq: str
    message_id: str
    public_id: str
    state: str
    sequence: str | None
    finding: Finding


@dataclass(frozen=True, slots=True)
class FindingCount:
    """How many letters of a DLQ wait for a decision after a restore, and have the same finding.

    The finding is what the database shows about a letter, for example that it came back to the DLQ.
    """

    dlq: str
    finding: Finding
    n: int

    @property
    def kind(self) -> str:
        """Return what the finding says about these letters: they are finished, unfinished or unknown."""
        return Finding(self.finding).kind


def count_findings() -> list[FindingCount]:
    """Count the letters that wait for a person's decision after a restore, by DLQ and finding."""
    return [
        FindingCount(count.dlq, Finding(count.finding), count.n) for count in rows.fetch(FindingCount, _TALLY, _TIMES)
    ]


def doubted_letters(*, dlq: int | None, above: int, limit: int) -> list[DoubtedLetter]:
    """Return up to `limit` letters that wait for a decision, sorted by id, with ids above `above`.

    `dlq`: only letters of this DLQ; None: of all DLQs.
    """
    return rows.fetch(DoubtedLetter, _PAGE, {**_TIMES, "dlq": dlq, "above": above, "limit": limit})


def record_decision(
    letters: Sequence[DoubtedLetter], word: RestoreDecision, *, by: str, reason: str
) -> tuple[int, list[Deletable]]:
    """Apply and record a person's decision (`word`) about these letters, in the caller's transaction.

    Return the number of changed letters, and the messages to delete from DLQs. Letters that are finished, or have
    another finding by now, are not changed. If a letter may have been sent, earlier letters of its lane are stale:
    they would be sent after a later letter.
    """
    lane_ids = sorted({letter.lane_id for letter in letters if letter.lane_id is not None})
    lanes.lock(lane_ids, [None] * len(lane_ids))
    seen = {letter.letter_id: letter.finding for letter in letters}
    asked = {**_TIMES, "letters": sorted(seen)}
    these = [letter for letter in rows.fetch(DoubtedLetter, _THESE, asked) if seen[letter.letter_id] == letter.finding]
    if not these:
        return 0, []
    ids = [letter.letter_id for letter in these]
    rows.execute(_CLOSE, {"letters": ids})
    deletable = _apply_decision(ids, word, f'{by} decided this after a restore: "{reason}"')
    rows.execute(_RECORD, {
        "word": word.value, "letters": ids, "by": by, "reason": reason,
        "findings": [letter.finding for letter in these], "states": [letter.state for letter in these],
    })  # fmt: skip
    passed = dict.fromkeys(lane_ids, "")
    for letter in these:
        if letter.lane_id in passed and (word is RestoreDecision.DELIVERED or letter.state in {"sending", "awaiting"}):
            passed[letter.lane_id] = max(passed[letter.lane_id], letter.sequence or "", key=str.encode)
    lane_state.advance(lane_ids, [None] * len(lane_ids), passed=[passed[lane] or None for lane in lane_ids])
    return len(these), deletable


def _apply_decision(ids: list[int], word: RestoreDecision, detail: str) -> list[Deletable]:
    match word:
        case RestoreDecision.DELIVERED:
            return rows.fetch(Deletable, _DELIVERED, {"letters": ids, "detail": detail})
        case RestoreDecision.SEND_AGAIN:
            rows.execute(_AGAIN, {"letters": ids})
            return []
        case RestoreDecision.PARKED:
            closings = [LetterClosing(letter, LetterState.PARKED, ParkedReason.IN_DOUBT, detail) for letter in ids]
            unfinished = (LetterState.CAPTURED, LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING)
            return settlement.close_letters(closings, out_of=unfinished)
