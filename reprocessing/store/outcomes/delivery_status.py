"""Read the delivery status of letters: whether they were delivered, and by what evidence that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.outcomes.delivery_status import DeliveryFacts, DeliveryStatus, status_of_letter
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models.letter import Letter
from reprocessing.store import rows
from reprocessing.store.outcomes.reports import ATTEMPT_REPORTS, REPORT_NAMES_ATTEMPT
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

# Decides the delivery status of many letters, by the rules of `domain.outcomes.delivery_status`. Attempts of a
# delivered letter are read only if a report names the letter.
_COUNTED = f"""
WITH said AS MATERIALIZED (
    SELECT a.id, a.letter_id, a.target_id, r.reporter_id
      FROM redrive_report r JOIN redrive_attempt a ON a.sent_message_id = r.message_id
     WHERE r.verdict = 'delivered'
    UNION ALL
    SELECT a.id, a.letter_id, a.target_id, r.reporter_id
      FROM redrive_report r JOIN redrive_letter l ON l.public_id = r.public_id
      JOIN redrive_attempt a ON a.letter_id = l.id AND ({REPORT_NAMES_ATTEMPT})
     WHERE r.verdict = 'delivered' AND (r.message_id IS NULL OR a.sent_message_id IS NULL)
), acknowledged AS MATERIALIZED (
    SELECT a.letter_id FROM redrive_attempt a
     WHERE {_NEWEST} AND (a.outcome = 'acknowledged' OR a.id IN (
            SELECT said.id FROM said
             WHERE said.reporter_id IS NULL OR said.target_id IN (
                    SELECT x.target_id FROM redrive_reporter_target x WHERE x.reporter_id = said.reporter_id)))
), told AS (
    SELECT l.dlq_id, CASE WHEN l.presumed THEN 'presumed' WHEN l.id IN (SELECT letter_id FROM acknowledged)
                          THEN 'acknowledged' ELSE 'accepted' END AS how
      FROM redrive_letter l
     WHERE l.state = 'delivered' AND (%(dlq)b::bigint IS NULL OR l.dlq_id = %(dlq)b::bigint)
    UNION ALL
    SELECT l.dlq_id, CASE WHEN l.state IN ('sending', 'awaiting') THEN 'open'
                          WHEN a.returned_at IS NOT NULL OR a.outcome = 'refused' OR {REPORTED_FAILED} THEN 'failed'
                          WHEN a.outcome = 'silent' THEN 'silent' ELSE 'unknown' END
      FROM redrive_letter l JOIN redrive_attempt a ON a.letter_id = l.id AND {_NEWEST}
     WHERE l.state IN ('waiting', 'sending', 'awaiting', 'parked', 'discarded')
       AND (%(dlq)b::bigint IS NULL OR l.dlq_id = %(dlq)b::bigint)
)
SELECT dlq_id, how, count(*) AS n FROM told GROUP BY dlq_id, how ORDER BY dlq_id, how
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
    """How many sent letters of a DLQ have the delivery status `how`, such as presumed (a value of `OutcomeSource`)."""

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
    """Return how many sent letters of this DLQ (None: of each DLQ) have each delivery status."""
    return rows.fetch(StatusCount, _COUNTED, {"dlq": dlq})


def reasons_of(letter: Letter, *, most: int = 200) -> list[ConsumerReason]:
    """Return up to `most` consumer reports about this letter, the newest first."""
    found = rows.fetch(ConsumerReason, _REASONS, {"letter": letter.pk, "most": most})
    return [replace(reason, message=content.opened_text(reason.message, Part.REPORT)) for reason in found]
