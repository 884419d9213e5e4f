"""Read the delivery status of letters: whether they were delivered, and by what evidence that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.outcomes.delivery_status import DeliveryFacts, DeliveryStatus, status_of_letter
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models.letter import Letter
from reprocessing.store import rows
from reprocessing.store.outcomes.recent_letters import MAX_OF_PART, RECENT_LETTERS
from reprocessing.store.outcomes.reports import ATTEMPT_REPORTS
from reprocessing.store.payloads import content
from reprocessing.store.replay.settlement_effects import REPORTED_FAILED

# The newest attempt that was sent decides a letter's delivery status.
_NEWEST: Final[LiteralString] = """
a.outcome IS DISTINCT FROM 'not_sent'
AND NOT EXISTS (SELECT FROM redrive_attempt later WHERE later.letter_id = a.letter_id AND later.no > a.no
                   AND later.outcome IS DISTINCT FROM 'not_sent')
"""

_FACTS = f"""
SELECT l.state, l.presumed, t.proof = 'acknowledged' AS acknowledges, coalesce(w.mode <> 'observe', false) AS watched,
       a.outcome, a.opened_at AS sent_at, a.taken_at, a.deadline, a.closed_at, a.returned_at, l.finished_at,
       {REPORTED_FAILED} AS denied, word.verdict AS said, word.happened_at AS said_at, coalesce(word.name,
              '') AS said_by
  FROM redrive_letter l
  LEFT JOIN redrive_attempt a ON a.letter_id = l.id AND {_NEWEST}
  LEFT JOIN redrive_target t ON t.id = coalesce(a.target_id, l.target_id)
  LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id
  LEFT JOIN LATERAL (
        SELECT r.verdict, r.happened_at, p.name
          FROM ({ATTEMPT_REPORTS}) r LEFT JOIN redrive_reporter p ON p.id = r.reporter_id
         WHERE r.verdict <> 'retrying' ORDER BY r.verdict = 'failed' DESC, r.id LIMIT 1) word ON a.id IS NOT NULL
 WHERE l.id = %(letter)b
"""  # noqa: S608  # the inserted text is a constant

# Decides the delivery status of recent letters, by the rules of `domain.outcomes.delivery_status`.
_COUNTED = f"""
SELECT d.id AS dlq_id, told.how, count(*) AS n
  FROM redrive_dlq d CROSS JOIN LATERAL {RECENT_LETTERS} l
  LEFT JOIN LATERAL (
        SELECT * FROM redrive_attempt WHERE letter_id = l.id AND outcome IS DISTINCT FROM 'not_sent'
         ORDER BY no DESC LIMIT 1) a ON true
 CROSS JOIN LATERAL (
    SELECT CASE WHEN l.state = 'delivered' AND l.presumed THEN 'presumed'
                WHEN l.state = 'delivered' AND (a.outcome = 'acknowledged' OR EXISTS (
                     SELECT FROM ({ATTEMPT_REPORTS}) r WHERE r.verdict = 'delivered')) THEN 'acknowledged'
                WHEN l.state = 'delivered' THEN 'accepted'
                WHEN l.state = 'duplicate' OR a.id IS NULL THEN NULL
                WHEN l.state IN ('sending', 'awaiting') THEN 'open'
                WHEN a.returned_at IS NOT NULL OR a.outcome = 'refused' OR {REPORTED_FAILED} THEN 'failed'
                WHEN a.outcome = 'silent' THEN 'silent' ELSE 'unknown' END AS how OFFSET 0) told
 WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint) AND told.how IS NOT NULL
 GROUP BY d.id, told.how ORDER BY d.id, told.how
"""  # noqa: S608  # as above

# Reports about the letter's first failure, its attempts, and the letter as a whole.
_REASONS = """
WITH named AS (
    SELECT r.id FROM redrive_letter l JOIN redrive_report r ON r.message_id = l.message_id WHERE l.id = %(letter)b
    UNION
    SELECT r.id FROM redrive_letter l JOIN redrive_report r ON r.public_id = l.public_id WHERE l.id = %(letter)b
    UNION
    SELECT r.id FROM redrive_attempt a JOIN redrive_report r ON r.message_id = a.sent_message_id
     WHERE a.letter_id = %(letter)b
), targets AS (
    SELECT l.target_id FROM redrive_letter l WHERE l.id = %(letter)b
    UNION
    SELECT o.target_id FROM redrive_letter l JOIN redrive_source o ON o.id = l.source_id WHERE l.id = %(letter)b
    UNION
    SELECT a.target_id FROM redrive_attempt a WHERE a.letter_id = %(letter)b
)
SELECT r.id, r.verdict, r.type, r.message, r.fingerprint, r.happened_at, r.received_at,
       coalesce(p.name, '') AS reporter, r.attempt_no, r.message_id
  FROM redrive_report r LEFT JOIN redrive_reporter p ON p.id = r.reporter_id
 WHERE r.id IN (SELECT id FROM named)
   AND (r.reporter_id IS NULL OR EXISTS (
        SELECT FROM redrive_reporter_target x WHERE x.reporter_id = r.reporter_id
           AND x.target_id IN (SELECT target_id FROM targets)))
 ORDER BY r.received_at DESC, r.id DESC LIMIT %(most)b
"""


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How many recent letters of a DLQ have the delivery status `how`, a value of `OutcomeSource`, such as presumed."""

    dlq_id: int
    how: str
    n: int


@dataclass(frozen=True, slots=True)
class ConsumerReason:
    """A consumer's report about a letter. `message` may quote the payload: show it only to people who may see payloads.

    The fields are those of `ConsumerReport`. `reporter`: the consumer's name; empty: not known.
    """

    id: int
    verdict: str
    type: str
    message: str
    fingerprint: str
    happened_at: datetime
    received_at: datetime
    reporter: str
    attempt_no: int | None
    message_id: str | None


def status_of(letter: Letter) -> DeliveryStatus:
    """Return whether the letter was delivered, by what evidence, and since when that is known."""
    return status_of_letter(rows.fetch(DeliveryFacts, _FACTS, {"letter": letter.pk})[0])


def count_by_status(dlq: int | None = None) -> list[StatusCount]:
    """Return how many recent sent letters of this DLQ (None: of each DLQ) have each delivery status.

    At most 1,000 letters that ended, 1,000 parked letters, and 1,000 unfinished letters of each state are counted.
    """
    return rows.fetch(StatusCount, _COUNTED, {"dlq": dlq, "most": MAX_OF_PART})


def reasons_of(letter: Letter, *, most: int = 200) -> list[ConsumerReason]:
    """Return up to `most` consumer reports about this letter, the newest first."""
    found = rows.fetch(ConsumerReason, _REASONS, {"letter": letter.pk, "most": most})
    return [replace(reason, message=content.opened_text(reason.message, Part.REPORT)) for reason in found]
