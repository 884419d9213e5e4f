"""Write consumer reports, and find the attempts that the reports are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.outcomes.consumer_report import ConsumerReport
from reprocessing.domain.payloads.sealing import Part
from reprocessing.store import rows
from reprocessing.store.payloads import content

#: Seconds for which the attempt of a report is searched again. A consumer may report before the attempt is recorded.
RECENT_SECONDS: Final = 60.0
#: Highest number of recent reports, the newest first, whose attempts are searched again.
_MOST: Final = 5_000

_TARGETS: Final[LiteralString] = """
SELECT x.target_id FROM redrive_reporter_target x JOIN redrive_reporter p ON p.id = x.reporter_id
 WHERE p.revoked_at IS NULL AND p.id = """

# A report without an attempt number is about the letter's only attempt, if the attempt was sent before the report.
_ONLY: Final[LiteralString] = """
NOT EXISTS (SELECT FROM redrive_attempt b
             WHERE b.letter_id = l.id AND b.id <> a.id AND b.outcome IS DISTINCT FROM 'not_sent')
"""

#: True of a report r with the redrive id of a letter l, and an attempt a of l, if the report is about the attempt.
REPORT_NAMES_ATTEMPT: Final[LiteralString] = f"""
r.attempt_no = a.no OR (r.attempt_no IS NULL AND r.received_at >= a.opened_at AND {_ONLY})
"""

#: For an attempt a of a letter l: the reports about a by reporters of its target. A report's redrive id is used only if
#: its message id is not known, since a consumer may forward a message with its redrive id.
ATTEMPT_REPORTS: Final[LiteralString] = f"""
SELECT r.* FROM (
    SELECT r.* FROM redrive_report r WHERE r.message_id = a.sent_message_id
    UNION ALL
    SELECT r.* FROM redrive_report r
     WHERE r.public_id = l.public_id AND (r.message_id IS NULL OR a.sent_message_id IS NULL)
       AND ({REPORT_NAMES_ATTEMPT})
) r WHERE r.reporter_id IS NULL OR a.target_id IN ({_TARGETS} r.reporter_id)
"""  # noqa: S608  # the inserted text is a constant

# Finds the attempt by the message id that the target gave, then by the redrive id. A report about no attempt is about
# the failure that brought the message to the DLQ. Such a report is only stored.
_FIND = f"""
WITH said AS (
    SELECT * FROM unnest(%(ns)b::int[], %(message_id)b::text[], %(public_id)b::uuid[], %(attempt_no)b::int[])
           AS s(n, message_id, public_id, no)
), ours AS (
    {_TARGETS} %(reporter)b::bigint
), met AS (
    SELECT s.n, 0 AS rank, a.no, a.id, a.letter_id, a.target_id, a.target_id AS other
      FROM said s JOIN redrive_attempt a ON a.sent_message_id = s.message_id
    UNION ALL
    SELECT s.n, 1, a.no, a.id, a.letter_id, a.target_id, a.target_id
      FROM said s JOIN redrive_letter l ON l.public_id = s.public_id
                  JOIN redrive_attempt a ON a.letter_id = l.id
     WHERE (s.message_id IS NULL OR a.sent_message_id IS NULL) AND (a.no = s.no OR (s.no IS NULL AND {_ONLY}))
    UNION ALL
    SELECT s.n, 2, 0, NULL, l.id, l.target_id, o.target_id
      FROM said s JOIN redrive_letter l ON l.public_id = s.public_id
      LEFT JOIN redrive_source o ON o.id = l.source_id
     WHERE s.no IS NULL OR s.message_id IS NOT NULL
    UNION ALL
    SELECT s.n, 3, 0, NULL, l.id, l.target_id, o.target_id
      FROM said s CROSS JOIN redrive_dlq d
      JOIN redrive_letter l ON l.dlq_id = d.id AND l.message_id = s.message_id
      LEFT JOIN redrive_source o ON o.id = l.source_id
)
SELECT DISTINCT ON (met.n) met.n, met.id AS attempt_id,
       %(reporter)b::bigint IS NULL
       OR EXISTS (SELECT FROM ours WHERE ours.target_id IN (met.target_id, met.other)) AS ours
  FROM met ORDER BY met.n, met.rank, met.no DESC
"""  # noqa: S608  # as above

# Reports are written in the order of their digests, so that transactions with the same reports do not deadlock.
_KEEP = """
INSERT INTO redrive_report (reporter_id, message_id, public_id, attempt_no, verdict, type, message, fingerprint,
                            happened_at, received_at, digest)
SELECT %(reporter)b::bigint, message_id, public_id, no, verdict, type, message, fingerprint,
       coalesce(at, redrive_now()), redrive_now(), digest
  FROM unnest(%(message_id)b::text[], %(public_id)b::uuid[], %(attempt_no)b::int[], %(verdict)b::text[],
              %(type)b::text[], %(message)b::text[], %(fingerprint)b::text[], %(at)b::timestamptz[],
              %(digests)b::bytea[])
       AS s(message_id, public_id, no, verdict, type, message, fingerprint, at, digest)
 ORDER BY digest
ON CONFLICT (digest) DO NOTHING
RETURNING digest
"""

# Attempts with a report that arrived while the attempt was being sent, before its message id was known. A failure
# report may also be about an attempt that was settled since; `acknowledgements` ignores reports that are already
# applied.
_UNMATCHED = f"""
WITH open AS MATERIALIZED (
    SELECT a.id, a.no, a.letter_id, a.target_id, a.sent_message_id, a.opened_at
      FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
     WHERE a.closed_at IS NULL AND num_nonnulls(a.taken_at, a.deadline) > 0 AND t.proof <> 'accepted'
), meant AS (
    SELECT a.id, a.target_id, r.reporter_id
      FROM open a JOIN redrive_report r ON r.message_id = a.sent_message_id
     WHERE r.verdict <> 'retrying'
    UNION ALL
    SELECT a.id, a.target_id, r.reporter_id
      FROM open a JOIN redrive_letter l ON l.id = a.letter_id JOIN redrive_report r ON r.public_id = l.public_id
     WHERE r.verdict <> 'retrying' AND (r.message_id IS NULL OR a.sent_message_id IS NULL) AND ({REPORT_NAMES_ATTEMPT})
)
SELECT id AS attempt_id FROM meant
 WHERE reporter_id IS NULL OR target_id IN ({_TARGETS} meant.reporter_id)
UNION
SELECT a.id
  FROM (SELECT * FROM redrive_report
         WHERE received_at > (SELECT redrive_now() - make_interval(secs => %(lately)b::float8))
           AND message_id IS NOT NULL
         ORDER BY received_at DESC LIMIT %(most)b) late
  JOIN redrive_attempt a ON a.sent_message_id = late.message_id
  JOIN redrive_letter l ON l.id = a.letter_id
 WHERE (late.verdict = 'failed' AND a.counts_as_failure IS NOT TRUE AND a.returned_at IS NULL
        AND a.outcome IN ('accepted', 'absent', 'acknowledged', 'silent'))
    OR (late.verdict = 'delivered' AND a.returned_at IS NULL
        AND (a.outcome = 'silent' AND a.counts_as_failure IS NULL OR a.outcome = 'absent' AND l.presumed
             OR a.outcome = 'unknown' AND l.state = 'waiting'))
"""  # noqa: S608  # as above


@dataclass(frozen=True, slots=True)
class ReportMatch:
    """What the report with index `n` is about.

    `attempt_id`: the attempt; None: the report is about the failure that brought the message to the DLQ. `ours`: the
    reporter may report on this message.
    """

    n: int
    attempt_id: int | None
    ours: bool


def match_reports(said: Sequence[ConsumerReport], reporter: int | None) -> dict[int, ReportMatch]:
    """Return the attempt that each report is about, by the report's index in `said`. Unknown messages are left out.

    `reporter`: id of the reporter; None: a consumer with access to this database, which may report on every message.
    """
    values = {**rows.arrays(ConsumerReport, said), "ns": list(range(len(said))), "reporter": reporter}
    return {found.n: found for found in rows.fetch(ReportMatch, _FIND, values)}


def report_digests(said: Sequence[ConsumerReport], reporter: int | None) -> list[bytes]:
    """Return for each report a digest, by which a repeated report is recognised.

    Call it outside a transaction, because AWS KMS may be called for the key of the digests.
    """
    return content.keyed([report.digest(reporter) for report in said])


def write_reports(said: Sequence[ConsumerReport], reporter: int | None, digests: Sequence[bytes]) -> set[bytes]:
    """Store reports, each with its digest (`report_digests`); return the digests of reports that are new."""
    values = {**rows.arrays(ConsumerReport, said), "reporter": reporter, "digests": list(digests)}
    values["message"] = [content.sealed_text(report.message, Part.REPORT) for report in said]
    return set(rows.column(bytes, _KEEP, values))


def unmatched_attempts() -> list[int]:
    """Return the ids of attempts whose reports must still be applied: they came before the message id was stored."""
    return rows.column(int, _UNMATCHED, {"lately": RECENT_SECONDS, "most": _MOST})
