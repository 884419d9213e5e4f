"""Find out whether a message received from a DLQ is new, was received before, or was sent and came back (a return).

Parameter `until` of the functions: when the received messages become visible in SQS again. After this time, nothing is
recorded, because another reader may have received the messages. A copy is a message whose content a letter stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from reprocessing.domain.ordering.placement import StoredPlace
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models.rule import RULE_BACKOFF
from reprocessing.store import rows
from reprocessing.store.payloads.content import READABLE, Sealer
from reprocessing.store.search.search_entries import EntriesOfMessages, Entry


@dataclass(frozen=True, slots=True)
class NewLetter:
    """A letter that is to be written, made from a message that was not captured before."""

    message_id: str
    handle: str
    body: bytes
    attributes: bytes
    size: int  #: bytes as SQS counts them: body, names, types and values
    system: dict[str, str]
    source: int | None
    target: int | None
    attempts: int  #: number of redrive attempts that other tools recorded in the message
    body_hash: bytes
    first_sent_at: datetime
    expires_at: datetime
    place: StoredPlace | None = None  #: its ordering key, sequence and idempotency key; None: they are set later


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A message that was received before. `state`: `held` (it stays in the DLQ), or `delete` (it is to be deleted)."""

    message_id: str
    state: str


@dataclass(frozen=True, slots=True)
class MarkedCopy:
    """A received message, with the values by which a message that this service has sent is recognised.

    `public_id`, `no`: the redrive id and the attempt number in the message's attributes; None: it has none.
    """

    message_id: str
    body_hash: bytes
    plain_hash: bytes  #: the body's digest in the form used for letters captured before payloads were encrypted
    public_id: UUID | None
    no: int | None
    source: str | None = None  #: ARN of the queue in which the message failed; None: SQS does not say


@dataclass(frozen=True, slots=True)
class ReturnedCopy:
    """A received message of a letter that was sent and came back to the DLQ.

    `backoff_*`: the backoff (base and cap in seconds) of the letter's rule, or else of its rate class, which is a rate
    and a backoff that rules give to letters. None: both have no backoff, so the DLQ's backoff applies.
    """

    message_id: str
    attempt_id: int
    letter_id: int
    lane_id: int
    attempts: int  #: the letter's attempts since a person released it
    run_id: int | None
    breaker_id: int | None
    backoff_base: float | None
    backoff_cap: float | None
    backoff_jitter: str | None
    lacks_body: bool  #: the body was deleted before the message came back


# The condition on the ids is repeated: with the join alone, the planner would read every copy of the DLQ. No handle is
# recorded after `until`, because another capture may have received the copy.
_REFRESH = """
WITH seen AS (
    SELECT * FROM unnest(%(ids)b::text[], %(handles)b::text[]) AS s(message_id, handle)
), known AS (
    SELECT message_id FROM redrive_dlq_copy WHERE dlq_id = %(dlq)b AND message_id = ANY(%(ids)b::text[])
), noted AS (
    UPDATE redrive_dlq_copy c
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

#: SQL: the `MarkedCopy` objects that are given as parameters, as rows.
MARKED: Final[LiteralString] = """
SELECT * FROM unnest(%(message_id)b::text[], %(body_hash)b::bytea[], %(plain_hash)b::bytea[], %(public_id)b::uuid[],
                     %(no)b::int[], %(source)b::text[]) AS s(message_id, body_hash, plain_hash, public_id, no, source)
"""

#: For a marked copy s, the letter l with its redrive id, and a target t: true if s is a copy of l that failed in t.
IS_LETTER: Final[LiteralString] = """
(l.body_hash IN (s.body_hash, s.plain_hash) OR t.kind = 'celery' OR EXISTS (
    SELECT FROM redrive_revision v
     WHERE v.letter_id = l.id AND ARRAY[s.body_hash, s.plain_hash] && ARRAY[v.body_hash, v.previous_body_hash]))
AND CASE WHEN s.source IS NOT NULL THEN t.arn = s.source
         ELSE %(dlq)b IN (l.dlq_id, t.watched_by_id)
           OR EXISTS (SELECT FROM redrive_source o WHERE o.dlq_id = %(dlq)b AND o.target_id = t.id) END
"""

# A return is recognised by the message id that the target gave, or else by its redrive id and equal bytes. If several
# attempts match, the newest is taken. A consumer may forward a message with its redrive id, so the redrive id counts
# only if the message failed in the attempt's target. Bytes are not compared for Celery targets, whose workers may
# change them. Bytes from before an edit also count as equal. A copy without a source queue may have failed in any
# target with this DLQ. OFFSET 0: without statistics the planner would join whole tables for a few copies.
_RETURNS = f"""
WITH seen AS (
    {MARKED}
), met AS (
    SELECT s.message_id, a.id, a.letter_id, a.lane_id, a.run_id, a.breaker_id, a.no, 0 AS rank
      FROM seen s CROSS JOIN LATERAL (
                SELECT * FROM redrive_attempt x WHERE x.sent_message_id = s.message_id OFFSET 0) a
    UNION ALL
    SELECT s.message_id, a.id, a.letter_id, a.lane_id, a.run_id, a.breaker_id, a.no, 1
      FROM seen s CROSS JOIN LATERAL (SELECT * FROM redrive_letter x WHERE x.public_id = s.public_id OFFSET 0) l
     CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id AND x.no = s.no OFFSET 0) a
      JOIN redrive_target t ON t.id = a.target_id
     WHERE {IS_LETTER}
)
SELECT DISTINCT ON (met.message_id) met.message_id, met.id AS attempt_id, met.letter_id, met.lane_id,
       l.attempts - l.attempts_before_release AS attempts, met.run_id, met.breaker_id, {RULE_BACKOFF},
       l.body_deleted_at IS NOT NULL AND l.state = 'delivered' AS lacks_body
  FROM met CROSS JOIN LATERAL (SELECT * FROM redrive_letter x WHERE x.id = met.letter_id OFFSET 0) l
  LEFT JOIN redrive_rule u ON u.id = l.rule_id LEFT JOIN redrive_rate_class c ON c.id = l.rate_class_id
 ORDER BY met.message_id, met.rank, met.no DESC
"""  # noqa: S608  # the inserted text is a constant

# The letters of all attempts that are open, or whose outcome stayed unknown, are read, and their hashes compared. With
# outcome `absence`, these may be as many as the messages sent in some minutes, and after an outage even more. An index
# of all letters by hash would cost each capture, and few services send without redrive ids. OFFSET 0: the planner would
# rather read all letters.
_DOUBTFUL_HASHES = """
WITH doubtful AS (
    SELECT letter_id FROM redrive_attempt WHERE closed_at IS NULL
    UNION
    SELECT letter_id FROM redrive_attempt WHERE outcome = 'unknown' AND returned_at IS NULL
)
SELECT DISTINCT k.body_hash
  FROM doubtful d CROSS JOIN LATERAL (
       SELECT body_hash FROM redrive_letter WHERE id = d.letter_id
       UNION ALL
       SELECT unnest(ARRAY[body_hash, previous_body_hash]) FROM redrive_revision WHERE letter_id = d.letter_id
       OFFSET 0) k
 WHERE k.body_hash = ANY(%(hashes)b::bytea[])
"""

# A letter is written with its place in a lane. If the DLQ's ordering settings were changed after they were read, the
# letter gets its place later. `FOR SHARE` waits for concurrent changes. Nothing is written if a data key was destroyed,
# or if the DLQ's search fields have changed: then the search values were found by former settings.
_ADMIT = """
WITH live AS (
    SELECT id FROM redrive_payload_key WHERE id = ANY(%(keys)b::bigint[]) AND destroyed_at IS NULL FOR SHARE
), searched AS (
    SELECT id FROM redrive_dlq WHERE id = %(dlq)b AND search_version = %(search_version)b::int FOR SHARE
), arrived AS (
    SELECT * FROM unnest(
        %(message_id)b::text[], %(handle)b::text[], %(body)b::bytea[], %(attributes)b::bytea[], %(size)b::int[],
        %(system)b::jsonb[], %(source)b::bigint[], %(target)b::bigint[], %(attempts)b::int[], %(body_hash)b::bytea[],
        %(first_sent_at)b::timestamptz[], %(expires_at)b::timestamptz[], %(has_place)b::bool[],
        %(blocked_reason)b::text[], %(detail)b::text[], %(ordering_key)b::text[], %(key_hash)b::bytea[],
        %(single)b::bool[], %(sequence)b::text[], %(idempotency_key)b::text[])
    AS s(message_id, handle, body, attributes, size, system, source_id, target_id, attempts, body_hash, first_sent_at,
         expires_at, has_place, blocked_reason, detail, ordering_key, key_hash, single, sequence, idempotency_key)
     WHERE redrive_now() < %(until)b::timestamptz
       AND (SELECT count(*) FROM live) = cardinality(%(keys)b::bigint[]) AND EXISTS (SELECT FROM searched)
), current AS (
    SELECT id FROM redrive_dlq WHERE id = %(dlq)b AND places_version = %(places_version)b FOR SHARE
), placed AS (
    SELECT * FROM arrived WHERE has_place AND (blocked_reason = 'possible_return' OR EXISTS (SELECT FROM current))
), lettered AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, attempts, earlier, body_hash, size,
                                first_sent_at, expires_at, captured_at, planned, blocked_reason, detail, ordering_key,
                                key_hash, single, sequence, idempotency_key)
    SELECT redrive_new_uuid(), %(dlq)b, a.message_id, a.source_id, a.target_id, a.attempts, a.attempts, a.body_hash,
           a.size, a.first_sent_at, a.expires_at, redrive_now(), p.message_id IS NOT NULL,
           coalesce(p.blocked_reason, ''), coalesce(p.detail, ''), p.ordering_key, p.key_hash, coalesce(p.single, true),
           p.sequence, p.idempotency_key
      FROM arrived a LEFT JOIN placed p ON p.message_id = a.message_id
     ORDER BY a.first_sent_at, a.message_id ON CONFLICT (dlq_id, message_id) DO NOTHING
    RETURNING id, message_id
), kept AS (
    INSERT INTO redrive_payload (letter_id, body, attributes, system)
    SELECT l.id, a.body, a.attributes, a.system FROM lettered l JOIN arrived a USING (message_id)
), indexed AS (
    INSERT INTO redrive_search_entry (letter_id, dlq_id, name, value, masked)
    SELECT l.id, %(dlq)b, s.name, s.value, s.masked
      FROM unnest(%(searched_id)b::text[], %(name)b::text[], %(value)b::text[], %(masked)b::bool[])
           AS s(message_id, name, value, masked)
      JOIN lettered l USING (message_id)
)
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, expires_at)
SELECT %(dlq)b, l.message_id, l.id, %(state)b, a.handle, %(until)b::timestamptz, a.expires_at
  FROM lettered l JOIN arrived a USING (message_id)
ON CONFLICT (dlq_id, message_id) DO NOTHING
RETURNING message_id
"""


def refresh_known(
    dlq: int, ids: Sequence[str], handles: Sequence[str], *, until: datetime, at_capture: bool
) -> list[KnownCopy]:
    """Record the new receipt handles of those messages that were received before; return these messages.

    `ids`, `handles`: the message ids and receipt handles of all received messages. `at_capture`: messages in this DLQ
    are deleted as soon as they are captured.
    """
    values = {"dlq": dlq, "ids": list(ids), "handles": list(handles), "until": until, "at_capture": at_capture}
    return rows.fetch(KnownCopy, _REFRESH, values)


def find_returns(dlq: int, copies: Sequence[MarkedCopy]) -> list[ReturnedCopy]:
    """Return the received messages that are returns: this service sent them (from any DLQ), and they came back here."""
    return rows.fetch(ReturnedCopy, _RETURNS, {**rows.arrays(MarkedCopy, copies), "dlq": dlq})


def doubtful_hashes(hashes: Sequence[bytes]) -> set[bytes]:
    """Return which of these body digests belong to letters that may be in a queue, because they were sent.

    Such a letter has an open attempt, or an attempt of unknown outcome. A received message with such a digest may be a
    letter that came back, not a new message.
    """
    return set(rows.column(bytes, _DOUBTFUL_HASHES, {"hashes": list(hashes)}))


def admit(  # noqa: PLR0913  # each by its name
    dlq: int, letters: Sequence[NewLetter], *, until: datetime, at_capture: bool, places_version: int,
    sealer: Sealer = READABLE, searched: EntriesOfMessages,
) -> set[str]:  # fmt: skip
    """Write new letters with their payloads and search values, in one statement; return the written message ids.

    Message ids must be unique. `at_capture`: delete the messages from the DLQ when the letters are committed.
    `places_version`: the version of the DLQ's ordering settings by which the letters were placed in lanes; if there is
    a newer version, the letters get their places later. `sealer`: encrypts the payloads. `searched`: the search values,
    and the DLQ's search version by which they were found; if there is a newer version, nothing is written.
    """
    values = {
        **rows.arrays(NewLetter, letters),
        **rows.arrays(StoredPlace, [letter.place or StoredPlace() for letter in letters]),
        "has_place": [letter.place is not None for letter in letters],
        "places_version": places_version,
        "dlq": dlq,
        "keys": sorted(searched.key_ids | ({sealer.key_id} if sealer.key_id is not None else set())),
        "search_version": searched.version,
        "searched_id": searched.message_ids,
        **rows.arrays(Entry, searched.entries),
        "body": [sealer.bytes(letter.body, Part.BODY, of=letter.message_id) for letter in letters],
        "attributes": [sealer.bytes(letter.attributes, Part.ATTRIBUTES, of=letter.message_id) for letter in letters],
        "system": [Jsonb(sealer.system(letter.system, of=letter.message_id)) for letter in letters],
        "state": "delete" if at_capture else "held",
        "until": until,
    }
    return set(rows.column(str, _ADMIT, values))
