"""Merge new failure groups of a DLQ whose messages have a similar shape (the set of keys of a JSON body)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.parking_lot.failure_fingerprint import FailureCause
from reprocessing.domain.parking_lot.similar_shapes import Shape, leaders
from reprocessing.store import rows

#: Highest number of shapes of a DLQ, those with the latest messages, with which a new shape is compared.
MOST: Final = 1_000

# Without this lock, two workers that see similar new shapes at the same moment would each make a group. A merge by a
# person takes the lock, too. Else a new group might be merged into a group that the person is merging into another.
_TURN = "SELECT pg_advisory_xact_lock(1381126739, dlq) FROM unnest(%(dlqs)b::int[]) AS s(dlq)"

_KNOWN = """
SELECT s.dlq_id, g.id, g.fingerprint, g.keys, g.merged_into_id IS NULL AS leads
  FROM unnest(%(dlqs)b::bigint[]) AS s(dlq_id) CROSS JOIN LATERAL (
       SELECT * FROM redrive_failure_group k WHERE k.dlq_id = s.dlq_id AND k.keys <> '{}'
        ORDER BY k.last_at DESC LIMIT %(most)b) g
"""

_THERE = """
SELECT g.dlq_id, g.fingerprint FROM unnest(%(dlqs)b::bigint[], %(digests)b::bytea[]) AS s(dlq_id, fingerprint)
  JOIN redrive_failure_group g ON g.dlq_id = s.dlq_id AND g.fingerprint = s.fingerprint
"""

_JOIN = """
UPDATE redrive_failure_group g SET merged_into_id = coalesce(k.merged_into_id, k.id), merged_at = redrive_now()
  FROM unnest(%(dlqs)b::bigint[], %(digests)b::bytea[], %(leaders)b::bytea[]) AS s(dlq_id, fingerprint, leader)
  JOIN redrive_failure_group k ON k.dlq_id = s.dlq_id AND k.fingerprint = s.leader
 WHERE g.dlq_id = s.dlq_id AND g.fingerprint = s.fingerprint AND g.merged_into_id IS NULL
"""

Placed = tuple[int, bytes]  # a DLQ's id, and the digest of a cause


@dataclass(frozen=True, slots=True)
class _Known:
    dlq_id: int
    id: int
    fingerprint: bytes
    keys: list[str]
    leads: bool


@dataclass(frozen=True, slots=True)
class _There:
    dlq_id: int
    fingerprint: bytes


def similar_to(causes: Iterable[tuple[int, FailureCause]]) -> dict[Placed, bytes]:
    """Find a similar shape for each new shape. A shape is the set of keys of a JSON body; a new one has no group yet.

    Return, by DLQ and digest of the new shape, the digest of the similar shape whose group it joins. New shapes without
    a similar shape are left out. If there are new shapes, their DLQs are locked with `lock_shapes`.

    `causes`: the DLQ's id and the failure cause of each message.
    """
    seen = Counter((dlq, cause.digest, cause.keys) for dlq, cause in causes if cause.keys)
    if not seen:
        return {}
    if not (new := _unstored(seen)):
        return {}
    dlqs = sorted({dlq for dlq, _, _ in new})
    lock_shapes(dlqs)
    new = _unstored(seen)  # another worker may have stored some of them meanwhile
    known = defaultdict[int, list[Shape]](list)
    for row in rows.fetch(_Known, _KNOWN, {"dlqs": dlqs, "most": MOST}):
        known[row.dlq_id].append(Shape(bytes(row.fingerprint), tuple(row.keys), leads=row.leads, place=row.id))
    fresh = defaultdict[int, list[Shape]](list)
    for (dlq, digest, keys), n in new.items():
        fresh[dlq].append(Shape(digest, keys, n=n))
    return {
        (dlq, digest): leader for dlq, shapes in fresh.items() for digest, leader in leaders(known[dlq], shapes).items()
    }


def lock_shapes(dlqs: Iterable[int]) -> None:
    """Keep other transactions from adding or merging shapes of these DLQs until this transaction ends."""
    rows.execute(_TURN, {"dlqs": [dlq % 2**31 for dlq in sorted(set(dlqs))]})


def merge_similar(joined: Mapping[Placed, bytes]) -> None:
    """Merge the groups of new shapes into the groups of similar shapes. `joined`: the result of `similar_to`."""
    if joined:
        values = {
            "dlqs": [dlq for dlq, _ in joined], "digests": [digest for _, digest in joined],
            "leaders": list(joined.values()),
        }  # fmt: skip
        rows.execute(_JOIN, values)


def _unstored(seen: Mapping[tuple[int, bytes, tuple[str, ...]], int]) -> dict[tuple[int, bytes, tuple[str, ...]], int]:
    values = {"dlqs": [dlq for dlq, _, _ in seen], "digests": [digest for _, digest, _ in seen]}
    there = {(row.dlq_id, bytes(row.fingerprint)) for row in rows.fetch(_There, _THERE, values)}
    return {shape: n for shape, n in seen.items() if shape[:2] not in there}
