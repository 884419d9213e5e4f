"""Read pages of failure groups, and count each group's letters and the letters that wait behind them in lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.dlqs.visible_dlqs import EVERY_DLQ, VisibleDlqs
from reprocessing.store.maintenance import counters

#: Letters that wait behind the newest `_ASKED` letters of a group are counted up to this number.
MAX_BEHIND: Final = 1_000
_ASKED: Final = 200
_REST: Final = ("parked", "captured")
_UNDER_WAY: Final = ("waiting", "sending", "awaiting")

# Open groups come first.
_PAGE = """
SELECT g.id, g.dlq_id, d.name AS dlq, g.cause, g.title, g.status, g.note, g.first_at, g.last_at, g.released_at,
       g.settled_at, g.status_by
  FROM redrive_failure_group g JOIN redrive_dlq d ON d.id = g.dlq_id
 WHERE (%(group)b::bigint IS NULL OR g.id = %(group)b::bigint)
   AND (%(dlq)b::bigint IS NULL OR g.dlq_id = %(dlq)b::bigint)
   AND (%(dlqs)b::bigint[] IS NULL OR g.dlq_id = ANY(%(dlqs)b::bigint[]))
   AND (%(status)b::text IS NULL OR g.status = %(status)b::text)
   AND (%(after)b::bigint IS NULL OR (g.status = 'open', g.last_at, g.id)
                                     < (%(open)b::bool, %(last_at)b::timestamptz, %(after)b::bigint))
 ORDER BY g.status = 'open' DESC, g.last_at DESC, g.id DESC LIMIT %(limit)b
"""

# Later letters in the lanes of a group's letters. Columns and bounds fit the indexes of a lane's order and of a group.
_FOUND: Final[LiteralString] = """
SELECT w.id FROM (
    SELECT DISTINCT ON (c.lane_id) c.lane_id, c.sequence, c.message_id
      FROM (SELECT lane_id, sequence, message_id, state, single FROM redrive_letter
             WHERE group_id = g.id ORDER BY id DESC LIMIT %(asked)b) c
     WHERE c.state IN ('waiting', 'parked') AND c.lane_id IS NOT NULL AND NOT c.single
     ORDER BY c.lane_id, c.sequence, c.message_id) h
  JOIN redrive_letter w
    ON w.lane_id = h.lane_id AND w.state IN ('waiting', 'sending', 'awaiting') AND w.frees_lane = false
   AND (w.sequence, w.message_id) > (h.sequence, h.message_id)
 LIMIT %(most)b + 1
"""

_BEHIND = f"""
SELECT g.id AS group_id, b.n
  FROM unnest(%(groups)b::bigint[]) AS g(id) CROSS JOIN LATERAL (SELECT count(*) AS n FROM ({_FOUND}) found) b
"""  # noqa: S608  # the inserted text is a constant

_WHO = f"SELECT found.id FROM (SELECT %(group)b::bigint AS id) g CROSS JOIN LATERAL ({_FOUND}) found"  # noqa: S608  # as above


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A failure group, as it is shown in lists."""

    id: int
    dlq_id: int
    dlq: str
    cause: str
    title: str
    status: str
    note: str
    first_at: datetime
    last_at: datetime
    released_at: datetime | None
    settled_at: datetime | None
    status_by: str


@dataclass(frozen=True, slots=True)
class PageStart:
    """The last group of a page, after which the next page begins."""

    open: bool
    last_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many letters a group has by state. `behind`: letters that wait behind them in lanes; 1,001 means more."""

    parked: int = 0
    captured: int = 0
    under_way: tuple[tuple[str, int], ...] = ()
    finished: tuple[tuple[str, int], ...] = ()
    behind: int = 0


@dataclass(frozen=True, slots=True)
class _Behind:
    group_id: int
    n: int


def group_page(
    *, limit: int, seen: VisibleDlqs = EVERY_DLQ, dlq: int | None = None, status: str | None = None,
    after: PageStart | None = None,
) -> list[GroupRow]:  # fmt: skip
    """Return up to `limit` failure groups, open groups first, then those with the latest failure first.

    `dlq`, `status`: only groups of this DLQ, with this status; None: any. `after`: the page before ended here.
    """
    values = {
        "group": None, "dlqs": seen.array, "dlq": dlq, "status": status, "limit": limit,
        "after": after.id if after else None,
        "open": after.open if after else None, "last_at": after.last_at if after else None,
    }  # fmt: skip
    return rows.fetch(GroupRow, _PAGE, values)


def find_group(group: int, *, seen: VisibleDlqs = EVERY_DLQ) -> GroupRow | None:
    """Return this group, or None: there is none, or it belongs to a DLQ that a person does not see."""
    values = dict.fromkeys(("dlq", "status", "after", "open", "last_at"))
    return rows.first(GroupRow, _PAGE, {**values, "dlqs": seen.array, "group": group, "limit": 1})


def group_counts(groups: Sequence[int]) -> dict[int, GroupCounts]:
    """Return how many letters each of these groups has by state, and how many letters wait behind them in lanes."""
    counted = counters.counts_in_groups(list(groups))
    values = {"groups": list(groups), "most": MAX_BEHIND, "asked": _ASKED}
    behind = {row.group_id: row.n for row in rows.fetch(_Behind, _BEHIND, values)}
    return {
        group: _numbers([(each.state, each.n) for each in counted if each.group_id == group], behind.get(group, 0))
        for group in groups
    }


def letters_behind(group: int) -> list[int]:
    """Return the ids of up to 1,001 letters that wait in lanes behind a group's letters."""
    return rows.column(int, _WHO, {"group": group, "most": MAX_BEHIND, "asked": _ASKED})


def _numbers(counted: Iterable[tuple[str, int]], behind: int) -> GroupCounts:
    found = dict(counted)
    return GroupCounts(
        parked=found.get("parked", 0),
        captured=found.get("captured", 0),
        under_way=tuple((state, found[state]) for state in _UNDER_WAY if found.get(state)),
        finished=tuple((state, n) for state, n in sorted(found.items()) if n and state not in (*_REST, *_UNDER_WAY)),
        behind=behind,
    )
