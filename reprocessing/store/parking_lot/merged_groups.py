"""Merge failure groups, split a merged group, and rename a group; each with an audit log entry.

A merged group stays in the database, with the id of the group that it is merged into. Its letters stay in it, so that a
merge can be undone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.parking_lot import similar_groups

# Groups that are merged into a chosen group are merged with it: so no group is merged into a merged group. Groups are
# locked in the order of failure_groups._PUT, to prevent deadlocks.
_LOCK = """
SELECT g.id, g.dlq_id, g.merged_into_id FROM redrive_failure_group g
 WHERE g.id = ANY(%(groups)b::bigint[]) OR g.merged_into_id = ANY(%(groups)b::bigint[])
 ORDER BY g.dlq_id, g.fingerprint FOR UPDATE
"""

_DLQS = "SELECT DISTINCT dlq_id FROM redrive_failure_group WHERE id = ANY(%(groups)b::bigint[])"

_MERGE = """
WITH merged AS (
    UPDATE redrive_failure_group g SET merged_into_id = %(into)b::bigint, merged_at = redrive_now()
     WHERE g.id <> %(into)b::bigint AND g.merged_into_id IS DISTINCT FROM %(into)b::bigint
       AND (g.id = ANY(%(groups)b::bigint[]) OR g.merged_into_id = ANY(%(groups)b::bigint[]))
    RETURNING g.id, g.dlq_id
)
INSERT INTO redrive_audit_entry (act, group_id, dlq_id, by, reason, at, before, after)
SELECT 'changed', m.id, m.dlq_id, %(by)b, %(reason)b, redrive_now(), '{"merged into group": ""}'::jsonb,
       jsonb_build_object('merged into group', %(into)b::text)
  FROM merged m WHERE m.id = ANY(%(groups)b::bigint[])
UNION ALL
SELECT 'changed', %(into)b::bigint, min(dlq_id), %(by)b, %(reason)b, redrive_now(), '{"merged groups": ""}'::jsonb,
       jsonb_build_object('merged groups', string_agg(id::text, ', ' ORDER BY id))
  FROM merged WHERE id = ANY(%(groups)b::bigint[])
"""

_SPLIT = """
WITH parted AS (
    UPDATE redrive_failure_group g SET merged_into_id = NULL, merged_at = NULL
     WHERE g.id = ANY(%(parts)b::bigint[]) AND g.merged_into_id = %(group)b::bigint
    RETURNING g.id, g.dlq_id
)
INSERT INTO redrive_audit_entry (act, group_id, dlq_id, by, reason, at, before, after)
SELECT 'changed', p.id, p.dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('merged into group', %(group)b::text), '{"merged into group": ""}'::jsonb FROM parted p
UNION ALL
SELECT 'changed', %(group)b::bigint, min(dlq_id), %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('merged groups', string_agg(id::text, ', ' ORDER BY id)), '{"merged groups": ""}'::jsonb
  FROM parted HAVING count(*) > 0
"""

_RENAME = """
WITH renamed AS (
    UPDATE redrive_failure_group g SET name = %(name)b WHERE g.id = %(group)b AND g.name = %(seen)b
    RETURNING g.id, g.dlq_id, g.title
)
INSERT INTO redrive_audit_entry (act, group_id, dlq_id, by, reason, at, before, after)
SELECT 'changed', id, dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('title', coalesce(nullif(%(seen)b::text, ''), title)),
       jsonb_build_object('title', coalesce(nullif(%(name)b::text, ''), title))
  FROM renamed
"""

_PARTS = """
SELECT g.id, coalesce(nullif(g.name, ''), g.title) AS title
  FROM redrive_failure_group g WHERE g.merged_into_id = %(group)b::bigint
 ORDER BY g.last_at DESC, g.id DESC LIMIT %(limit)b
"""


@dataclass(frozen=True, slots=True)
class _Locked:
    id: int
    dlq_id: int
    merged_into_id: int | None


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """A failure group that is merged into another group."""

    id: int
    title: str


def merge_groups(groups: Collection[int], *, into: int, by: str, reason: str) -> str:
    """Merge failure groups of one DLQ into the group `into`, in one transaction.

    Return an empty text if the groups were merged, else a sentence for people that says why nothing was done.
    """
    chosen = {into, *groups}
    values = {"groups": sorted(chosen), "into": into, "by": by, "reason": reason}

    def work() -> str:
        similar_groups.lock_shapes(rows.column(int, _DLQS, values))
        there = rows.fetch(_Locked, _LOCK, values)
        mine = [group for group in there if group.id in chosen]
        if len(mine) < len(chosen) or any(group.merged_into_id is not None for group in mine):
            return "Another person merged or deleted one of the groups. Go back to the list, and select groups again."
        if len({group.dlq_id for group in mine}) > 1:
            return "The groups belong to several DLQs. Merge only groups of one DLQ."
        rows.execute(_MERGE, values)
        return ""

    return rows.in_transaction(work)


def split_group(group: int, parts: Collection[int], *, by: str, reason: str) -> int:
    """Undo the merge of the groups `parts` into the group `group`; return how many merges were undone."""
    values = {"groups": [group, *parts], "group": group, "parts": list(parts), "by": by, "reason": reason}

    def work() -> int:
        rows.fetch(_Locked, _LOCK, values)
        entries = rows.execute(_SPLIT, values)
        return max(0, entries - 1)

    return rows.in_transaction(work)


def rename_group(group: int, name: str, *, seen: str, by: str, reason: str) -> bool:
    """Set a group's name, which is shown in place of its title; empty: no name.

    If the group's name is not `seen`, the name that the person saw, change nothing and return False.
    """
    return rows.execute(_RENAME, {"group": group, "name": name, "seen": seen, "by": by, "reason": reason}) == 1


def merged_groups(group: int, *, limit: int) -> list[MergedGroup]:
    """Return up to `limit` groups that are merged into this group, the group with the latest message first."""
    return rows.fetch(MergedGroup, _PARTS, {"group": group, "limit": limit})
