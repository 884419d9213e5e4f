"""Store the letters' source queues, and their places in lanes: ordering key, sequence and idempotency key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString, TypeVar

from reprocessing.domain.errors import PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.ordering.placement import StoredPlace
from reprocessing.store import rows
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import HasContent

Letter = TypeVar("Letter", bound=HasContent)


@dataclass(frozen=True, slots=True)
class UnplacedLetter:
    """A captured letter whose place in a lane (ordering key and sequence) is not determined yet.

    `body`: empty if no ordering key is read from bodies. `asked_at`: the database's time when the letter was read.
    """

    id: int
    message_id: str
    source_id: int | None
    size: int
    size_limit: int | None
    target_kind: str | None
    strips_expires: bool | None
    asked_at: datetime
    body: bytes
    attributes: bytes
    system: dict[str, Any]


# Columns that describe a letter's target.
_OF_TARGET: Final[LiteralString] = "t.size_limit, t.kind AS target_kind, t.strips_expires, redrive_now() AS asked_at"

# At most 1,000 letters and about 16 MiB: either letters that could not be decrypted when it was tried (`tried`; their
# `detail` says why), or the others. The bodies of Celery tasks, and of letters without a source queue, are always read.
_UNPLACED = f"""
SELECT l.id, l.message_id, l.source_id, l.size, p.system, p.attributes, {_OF_TARGET},
       CASE WHEN l.is_read THEN p.body ELSE ''::bytea END AS body
  FROM (SELECT *, sum(CASE WHEN is_read THEN size ELSE 0 END) OVER (ORDER BY id)
                  - CASE WHEN is_read THEN size ELSE 0 END AS before
          FROM (SELECT w.id, w.message_id, w.source_id, w.target_id, w.size,
                       %(bodies)b::bool OR w.source_id IS NULL OR coalesce(k.kind = 'celery', false) AS is_read
                  FROM redrive_letter w LEFT JOIN redrive_target k ON k.id = w.target_id
                 WHERE w.dlq_id = %(dlq)b AND w.state = 'captured' AND NOT w.planned AND w.id > %(above)b
                   AND (w.detail <> '') = %(tried)b
                 ORDER BY w.id LIMIT 1000) first) l
  JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_target t ON t.id = l.target_id
 WHERE l.before < 16777216
 ORDER BY l.id
"""  # noqa: S608  # the inserted text is a constant

_KINDS = """
SELECT DISTINCT detail <> '' AS tried FROM redrive_letter WHERE dlq_id = %(dlq)b AND state = 'captured' AND NOT planned
"""

_MARK = """
UPDATE redrive_letter l SET detail = s.why
  FROM unnest(%(letters)b::bigint[], %(whys)b::text[]) AS s(letter_id, why)
 WHERE l.id = s.letter_id AND l.state = 'captured' AND NOT l.planned AND l.detail <> s.why
"""

_COUNT_UNDECRYPTABLE = """
SELECT count(*) FILTER (WHERE detail <> '') AS n, count(*) FILTER (WHERE detail = '') AS untried,
       coalesce((array_agg(detail ORDER BY id) FILTER (WHERE detail <> ''))[1], '') AS why
  FROM redrive_letter WHERE dlq_id = %(dlq)b AND state = 'captured' AND NOT planned
"""

_NAME = """
UPDATE redrive_letter l SET source_id = o.id, target_id = o.target_id
  FROM unnest(%(letters)b::bigint[], %(sources)b::bigint[]) AS s(letter_id, source_id)
  JOIN redrive_source o ON o.id = s.source_id
 WHERE l.id = s.letter_id AND l.source_id IS NULL AND l.dlq_id = o.dlq_id AND l.state IN ('captured', 'parked')
"""

_PLACE = """
UPDATE redrive_letter l
   SET planned = true, blocked_reason = s.blocked_reason, detail = s.detail, ordering_key = s.ordering_key,
       key_hash = s.key_hash, single = s.single, sequence = s.sequence,
       idempotency_key = CASE WHEN l.revision_id IS NULL THEN s.idempotency_key ELSE coalesce((
            SELECT v.idempotency_key FROM redrive_revision v
             WHERE v.letter_id = l.id AND v.idempotency_key IS NOT NULL ORDER BY v.no DESC LIMIT 1),
            s.idempotency_key) END
  FROM unnest(%(letters)b::bigint[], %(blocked_reason)b::text[], %(detail)b::text[], %(ordering_key)b::text[],
              %(key_hash)b::bytea[], %(single)b::bool[], %(sequence)b::text[], %(idempotency_key)b::text[])
       AS s(letter_id, blocked_reason, detail, ordering_key, key_hash, single, sequence, idempotency_key)
 WHERE l.id = s.letter_id AND l.state = %(state)b AND l.lane_id IS NULL
"""

# Parked letters without a source queue, about 16 MiB at most.
_NAMELESS = """
SELECT l.id, l.dlq_id, l.message_id, p.body, p.attributes, p.system
  FROM (SELECT id, dlq_id, message_id, sum(size) OVER (ORDER BY id) - size AS before FROM redrive_letter
         WHERE id = ANY(%(letters)b::bigint[]) AND state = 'parked' AND source_id IS NULL AND id > %(above)b) l
  JOIN redrive_payload p ON p.letter_id = l.id
 WHERE l.before < 16777216
 ORDER BY l.id
"""

# Letters parked without a place in a lane. After a change of the DLQ's settings, or an edit, they may get a place.
_STRAYS = f"""
SELECT l.id, l.message_id, l.source_id, l.dlq_id, l.size, p.system,
       coalesce(v.attributes, p.attributes) AS attributes, coalesce(v.body, p.body) AS body, {_OF_TARGET}
  FROM (SELECT w.*, sum(greatest(w.size, length(e.body))) OVER (ORDER BY w.id)
                    - greatest(w.size, length(e.body)) AS before
          FROM redrive_letter w LEFT JOIN redrive_revision e ON e.id = w.revision_id
         WHERE w.id = ANY(%(letters)b::bigint[]) AND w.state = 'parked' AND w.lane_id IS NULL AND w.key_hash IS NULL
           AND w.source_id IS NOT NULL AND w.id > %(above)b) l
  JOIN redrive_payload p ON p.letter_id = l.id LEFT JOIN redrive_target t ON t.id = l.target_id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE l.before < 16777216
 ORDER BY l.id
"""  # noqa: S608  # as above

# Plans that are not started select their letters again, because the letters' lanes may have changed.
_UNSELECT = """
WITH plans AS (
    UPDATE redrive_run SET selected = NULL, behind = NULL
     WHERE dlq_id = %(dlq)b AND kind = 'drain' AND state = 'planned' RETURNING id
)
UPDATE redrive_letter l SET run_id = NULL FROM plans p WHERE l.run_id = p.id AND l.state = 'captured'
"""

_NEW_VERSION = "UPDATE redrive_dlq SET places_version = places_version + 1 WHERE id = %(dlq)b"

# Removes the places of captured letters without a run, so that the places are determined again.
_REPLAN = """
UPDATE redrive_letter SET planned = false, blocked_reason = '', detail = ''
 WHERE dlq_id = %(dlq)b AND state = 'captured' AND run_id IS NULL AND planned
   AND blocked_reason NOT IN ('possible_return', 'moved_by_aws')
"""

# Captured letters without a run get the target of their source queue. Other letters keep their target.
_LEAD = """
UPDATE redrive_letter l SET target_id = o.target_id
  FROM redrive_source o
 WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND l.run_id IS NULL AND o.id = l.source_id
   AND l.target_id IS DISTINCT FROM o.target_id
"""


@dataclass(frozen=True, slots=True)
class UnplacedLetters:
    """Captured letters of a DLQ without a place in a lane.

    Attributes:
        readable: the letters that can be decrypted.
        lost: why a letter can never be decrypted, by letter id: its data key was destroyed, or its bytes were changed.
        undecryptable_now: why a letter cannot be decrypted now, by letter id: its wrapping key is missing, or AWS KMS
            does not answer.
        last: the highest id of these letters.
    """

    readable: list[UnplacedLetter]
    lost: dict[int, str]
    undecryptable_now: dict[int, str]
    last: int


def unplaced_letters(
    dlq: int, *, bodies: bool, above: int, tried: bool = False, failed: dict[int, PayloadUnreadable] | None = None
) -> UnplacedLetters | None:
    """Return the next captured letters of a DLQ without a place in a lane: up to 1,000, or about 16 MiB; None: no more.

    `bodies`: include all bodies; else only bodies of Celery tasks and of letters without a source queue. `above`: only
    letters with ids above this one. `tried`: only letters that `mark_undecryptable` marked; if false, only the others.
    `failed`: errors of data keys that could not be unwrapped, by the key's id. These keys are not tried again; keys
    that fail now are added.
    """
    found = rows.fetch(UnplacedLetter, _UNPLACED, {"dlq": dlq, "bodies": bodies, "above": above, "tried": tried})
    if not found:
        return None
    readable, errors = content.opened_or_errors(found, failed)
    lost, undecryptable_now = dict[int, str](), dict[int, str]()
    for letter in found:
        if error := errors.get(letter.message_id):
            (undecryptable_now if isinstance(error, PayloadKeyUnavailable) else lost)[letter.id] = str(error)
    return UnplacedLetters(readable, lost, undecryptable_now, found[-1].id)


def unplaced_kinds(dlq: int) -> list[bool]:
    """Return for which values of its argument `tried` the function `unplaced_letters` finds letters, True first."""
    return sorted(rows.column(bool, _KINDS, {"dlq": dlq}), reverse=True)


def mark_undecryptable(whys: Mapping[int, str]) -> None:
    """Record why these captured letters, which have no place yet, cannot be decrypted now. `whys`: by letter id."""
    if whys:
        rows.execute(_MARK, {"letters": list(whys), "whys": list(whys.values())})


@dataclass(frozen=True, slots=True)
class Undecryptable:
    """How many captured letters of a DLQ could not be decrypted when it was tried, and why the first could not.

    `untried`: how many more letters have no place yet, and were not tried.
    """

    n: int
    untried: int
    why: str


def count_undecryptable(dlq: int) -> Undecryptable:
    """Count the captured letters of a DLQ that could not be decrypted."""
    return rows.fetch(Undecryptable, _COUNT_UNDECRYPTABLE, {"dlq": dlq})[0]


@dataclass(frozen=True, slots=True)
class UnplacedParkedLetter(UnplacedLetter):
    """A parked letter whose place in a lane (ordering key and sequence) is not determined."""

    dlq_id: int


def unplaced_parked_letters(letters: Collection[int]) -> Iterator[list[UnplacedParkedLetter]]:
    """Yield those of these letters that are parked and have no lane and no ordering key, in lists of about 16 MiB.

    Letters that can never be decrypted are left out. Raises PayloadKeyUnavailable.
    """
    values = {"letters": list(letters), "above": 0}
    while found := rows.fetch(UnplacedParkedLetter, _STRAYS, values):
        yield _without_lost(found)
        values["above"] = found[-1].id


def _without_lost(found: Sequence[Letter]) -> list[Letter]:
    """Return the letters decrypted, without those that can never be decrypted. Raises PayloadKeyUnavailable."""
    readable, errors = content.opened_or_errors(found)
    for error in errors.values():
        if isinstance(error, PayloadKeyUnavailable):
            raise error
    return readable


def place_again(dlq: int) -> int:
    """Remove the places of a DLQ's captured letters, so that its new settings determine new places; return how many.

    A place is an ordering key, sequence and idempotency key. Planned runs select their letters again.
    """
    rows.execute(_NEW_VERSION, {"dlq": dlq})
    rows.execute(_UNSELECT, {"dlq": dlq})
    rows.execute(_LEAD, {"dlq": dlq})
    return rows.execute(_REPLAN, {"dlq": dlq})


def set_sources(sources: Mapping[int, int]) -> int:
    """Set the source queue, and its target, of letters without a source queue; return how many letters changed.

    `sources`: the id of the source queue, by letter id.
    """
    if not sources:
        return 0
    return rows.execute(_NAME, {"letters": list(sources), "sources": list(sources.values())})


def set_places(places: Mapping[int, StoredPlace], *, state: LetterState = LetterState.CAPTURED) -> None:
    """Store the places of letters in lanes, by letter id. Letters in another state than `state` are not changed."""
    rows.execute(_PLACE, {"state": state, "letters": list(places), **rows.arrays(StoredPlace, places.values())})


@dataclass(frozen=True, slots=True)
class LetterWithoutSource:
    """A parked letter whose source queue was not known at its capture."""

    id: int
    dlq_id: int
    message_id: str
    body: bytes
    attributes: bytes
    system: dict[str, Any]


def letters_without_source(letters: Collection[int]) -> Iterator[list[LetterWithoutSource]]:
    """Yield those of these letters that are parked and have no source queue, in lists of about 16 MiB.

    Letters that can never be decrypted are left out. Raises PayloadKeyUnavailable.
    """
    values = {"letters": list(letters), "above": 0}
    while found := rows.fetch(LetterWithoutSource, _NAMELESS, values):
        yield _without_lost(found)
        values["above"] = found[-1].id
