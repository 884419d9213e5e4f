"""The statements of a capture: which copies are known, which are returns, which are new letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from reprocessing.models.rule import BACKOFF
from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class NewLetter:
    """A copy that is nobody we know, ready to be written.

    Attributes:
        size: bytes as SQS counts them: body, names, types and values.
        attempts: what earlier tools say they have tried.
    """

    message_id: str
    handle: str
    body: bytes
    attributes: bytes
    size: int
    system: dict[str, str]
    origin: int | None
    target: int | None
    attempts: int
    body_hash: bytes
    died_at: datetime
    expires_at: datetime
    possible_return: bool = False


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A copy that was received before; `state` says what is to become of it now."""

    message_id: str
    state: str


@dataclass(frozen=True, slots=True)
class Marked:
    """What a copy shows of itself: where it bears no mark of ours, `public_id` and `no` are None.

    `source`: the ARN of the queue it died in, where SQS says so.
    """

    message_id: str
    body_hash: bytes
    public_id: UUID | None
    no: int | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ReturnedCopy:
    """A copy that is a letter of ours, come back. `attempts`: since a person released it.

    The backoff is the letter's own, where a rule gave it one.
    """

    message_id: str
    attempt_id: int
    letter_id: int
    lane_id: int
    attempts: int
    run_id: int | None
    breaker_id: int | None
    backoff_base: float | None
    backoff_cap: float | None
    backoff_jitter: str | None


# The ids are asked for twice: joined alone, the planner would read every copy of the dlq. A handle whose time is over
# may not be the latest: another capture may have received the copy since. So it is not noted, and nothing is done.
_REFRESH = """
WITH seen AS (
    SELECT * FROM unnest(%(ids)b::text[], %(handles)b::text[]) AS s(message_id, handle)
), known AS (
    SELECT message_id FROM redrive_custody WHERE dlq_id = %(dlq)b AND message_id = ANY(%(ids)b::text[])
), noted AS (
    UPDATE redrive_custody c
       SET handle = s.handle, visible_until = %(until)b::timestamptz,
           receives = c.receives + 1, extended = false, gone_at = NULL,
           state = CASE WHEN c.attempt_id IS NULL AND NOT %(at_capture)b::bool
                         AND l.state IN ('captured', 'waiting', 'sending', 'awaiting') THEN 'held' ELSE 'delete' END
      FROM seen s, redrive_letter l
     WHERE c.dlq_id = %(dlq)b AND c.message_id = ANY(%(ids)b::text[]) AND c.message_id = s.message_id
       AND l.id = c.letter_id AND redrive_now() < %(until)b::timestamptz
    RETURNING c.message_id, c.state
)
SELECT message_id, coalesce(n.state, 'held') AS state FROM known LEFT JOIN noted n USING (message_id)
"""

# By the id the target gave it, else by the marks we gave it and the same bytes; of several attempts the newest.
# Marks travel along when a consumer hands a letter on: they tell a return only where it died in the attempt's target.
# Celery workers hand nothing on, and what they are given may differ from the letter's bytes. What was sent before a
# person edited the letter may come back, too.
# Each copy is looked up by itself (OFFSET 0): a planner without statistics would join whole tables for a few copies.
# A copy that does not name the queue it died in may have died there when this dlq is one that the target's go to.
_RETURNS = f"""
WITH seen AS (
    SELECT * FROM unnest(%(ids)b::text[], %(hashes)b::bytea[], %(publics)b::uuid[], %(nos)b::int[], %(sources)b::text[])
           AS s(message_id, body_hash, public_id, no, source)
), met AS (
    SELECT s.message_id, a.id, a.letter_id, a.lane_id, a.run_id, a.breaker_id, a.no, 0 AS rank
      FROM seen s CROSS JOIN LATERAL (
                SELECT * FROM redrive_attempt x WHERE x.sent_message_id = s.message_id OFFSET 0) a
    UNION ALL
    SELECT s.message_id, a.id, a.letter_id, a.lane_id, a.run_id, a.breaker_id, a.no, 1
      FROM seen s CROSS JOIN LATERAL (SELECT * FROM redrive_letter x WHERE x.public_id = s.public_id OFFSET 0) l
     CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id AND x.no = s.no OFFSET 0) a
      JOIN redrive_target t ON t.id = a.target_id
     WHERE (l.body_hash = s.body_hash OR t.kind = 'celery' OR EXISTS (
                SELECT FROM redrive_revision v
                 WHERE v.letter_id = l.id AND s.body_hash IN (v.body_hash, v.former_hash)))
       AND CASE WHEN s.source IS NOT NULL THEN t.arn = s.source
                ELSE %(dlq)b IN (l.dlq_id, t.watched_by_id)
                  OR EXISTS (SELECT FROM redrive_origin o WHERE o.dlq_id = %(dlq)b AND o.target_id = t.id) END
)
SELECT DISTINCT ON (met.message_id) met.message_id, met.id AS attempt_id, met.letter_id, met.lane_id,
       l.attempts - l.forgiven AS attempts, met.run_id, met.breaker_id, {BACKOFF}
  FROM met CROSS JOIN LATERAL (SELECT * FROM redrive_letter x WHERE x.id = met.letter_id OFFSET 0) l
  LEFT JOIN redrive_rule u ON u.id = l.rule_id LEFT JOIN redrive_rate_class c ON c.id = l.rate_class_id
 ORDER BY met.message_id, met.rank, met.no DESC
"""  # noqa: S608  # the inserted text is a constant

_TWINS = """
SELECT DISTINCT k.body_hash
  FROM (SELECT id, body_hash FROM redrive_letter WHERE body_hash = ANY(%(hashes)b::bytea[])
        UNION ALL
        SELECT letter_id, body_hash FROM redrive_revision WHERE body_hash = ANY(%(hashes)b::bytea[])
        UNION ALL
        SELECT letter_id, former_hash FROM redrive_revision WHERE former_hash = ANY(%(hashes)b::bytea[])) k
  JOIN redrive_attempt a ON a.letter_id = k.id
 WHERE a.closed_at IS NULL OR (a.outcome = 'unknown' AND a.returned_at IS NULL)
"""

_ADMIT = """
WITH arrived AS (
    SELECT * FROM unnest(
        %(ids)b::text[], %(handles)b::text[], %(bodies)b::bytea[], %(attributes)b::bytea[], %(sizes)b::int[],
        %(systems)b::jsonb[], %(origins)b::bigint[], %(targets)b::bigint[], %(attempts)b::int[], %(hashes)b::bytea[],
        %(died)b::timestamptz[], %(expires)b::timestamptz[], %(objections)b::text[])
    AS s(message_id, handle, body, attributes, size, system, origin_id, target_id, attempts, body_hash, died_at,
         expires_at, objection)
     WHERE redrive_now() < %(until)b::timestamptz
), lettered AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, origin_id, target_id, attempts, earlier, body_hash, size,
                                died_at, expires_at, captured_at, planned, objection)
    SELECT gen_random_uuid(), %(dlq)b, message_id, origin_id, target_id, attempts, attempts, body_hash,
           size, died_at, expires_at, redrive_now(), objection <> '', objection
      FROM arrived ORDER BY died_at, message_id
    ON CONFLICT (dlq_id, message_id) DO NOTHING
    RETURNING id, message_id
), kept AS (
    INSERT INTO redrive_payload (letter_id, body, attributes, system)
    SELECT l.id, a.body, a.attributes, a.system FROM lettered l JOIN arrived a USING (message_id)
)
INSERT INTO redrive_custody (dlq_id, message_id, letter_id, state, handle, visible_until)
SELECT %(dlq)b, l.message_id, l.id, %(state)b, a.handle, %(until)b::timestamptz
  FROM lettered l JOIN arrived a USING (message_id)
ON CONFLICT (dlq_id, message_id) DO NOTHING
RETURNING message_id
"""


def refresh(
    dlq: int, ids: Sequence[str], handles: Sequence[str], *, until: datetime, at_capture: bool
) -> list[KnownCopy]:
    """Note the new handles of the copies that are known, and what is to become of each now.

    `until`: when they come to sight. By then another may have received them: nothing is noted any more.
    """
    values = {
        "dlq": dlq,
        "ids": list(ids),
        "handles": list(handles),
        "until": until,
        "at_capture": at_capture,
    }
    return rows.fetch(KnownCopy, _REFRESH, values)


def returns(dlq: int, copies: Sequence[Marked]) -> list[ReturnedCopy]:
    """Those of the copies, received from this dlq, that are letters of ours come back; of whichever dlq they are."""
    values = {
        "dlq": dlq,
        "ids": [copy.message_id for copy in copies],
        "hashes": [copy.body_hash for copy in copies],
        "publics": [copy.public_id for copy in copies],
        "nos": [copy.no for copy in copies],
        "sources": [copy.source for copy in copies],
    }
    return rows.fetch(ReturnedCopy, _RETURNS, values)


def in_doubt(hashes: Sequence[bytes]) -> set[bytes]:
    """The digests under which an attempt is open or of unknown fate: a copy with one of them may be that attempt's."""
    return set(rows.column(bytes, _TWINS, {"hashes": list(hashes)}))


def admit(dlq: int, letters: Sequence[NewLetter], *, until: datetime, at_capture: bool) -> set[str]:
    """Write new letters, their bytes and their copies, in one statement; the message ids that were new indeed.

    Args:
        dlq: the dlq they were received from.
        letters: each message id once.
        until: when the copies come to sight. By then they may be anybody's, AWS's redrive's also: nothing is written.
        at_capture: the copies are to be deleted as soon as this is committed.
    """
    values = {
        "dlq": dlq,
        "ids": [letter.message_id for letter in letters],
        "handles": [letter.handle for letter in letters],
        "bodies": [letter.body for letter in letters],
        "attributes": [letter.attributes for letter in letters],
        "sizes": [letter.size for letter in letters],
        "systems": [Jsonb(letter.system) for letter in letters],
        "origins": [letter.origin for letter in letters],
        "targets": [letter.target for letter in letters],
        "attempts": [letter.attempts for letter in letters],
        "hashes": [letter.body_hash for letter in letters],
        "died": [letter.died_at for letter in letters],
        "expires": [letter.expires_at for letter in letters],
        "objections": ["possible_return" if letter.possible_return else "" for letter in letters],
        "state": "delete" if at_capture else "held",
        "until": until,
    }
    return set(rows.column(str, _ADMIT, values))
