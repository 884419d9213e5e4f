"""Read pages of failure groups. Count each group's letters, and the later letters in lanes that wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

#: Letters that wait behind letters of a group are counted up to this number. Only the newest 200 letters (`_ASKED`) of
#: the latest 20 groups (`_PARTS`) that are merged into the group are read.
MAX_BEHIND: Final = 1_000
_ASKED: Final = 200
#: Ordering keys are counted in this many of the newest letters of a group.
MAX_KEYS: Final = 100
_PARTS: Final = 20
_REST: Final = ("parked", "captured")
_UNDER_WAY: Final = ("waiting", "sending", "awaiting")

# A group's counts and times include the groups that are merged into it. All groups are read, with their stored counts,
# but no letters.
_GROUPS: Final[LiteralString] = f"""
WITH parts AS (
    SELECT coalesce(merged_into_id, id) AS id, min(first_at) AS first_at, max(last_at) AS last_at,
           max(released_at) AS released_at, count(*) - 1 AS merged
      FROM redrive_failure_group
     WHERE (%(dlqs)b::bigint[] IS NULL OR dlq_id = ANY(%(dlqs)b::bigint[]))
       AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
       AND (%(group)b::bigint IS NULL OR id = %(group)b::bigint OR merged_into_id = %(group)b::bigint)
     GROUP BY 1
), counted AS (
    SELECT coalesce(m.merged_into_id, m.id) AS id, sum(t.n)::bigint AS messages,
           coalesce(sum(t.n) FILTER (WHERE t.state = 'parked'), 0)::bigint AS parked
      FROM {counters.COUNTS} t JOIN redrive_failure_group m ON m.id = t.group_id
     WHERE %(group)b::bigint IS NULL OR m.id = %(group)b::bigint OR m.merged_into_id = %(group)b::bigint
     GROUP BY 1
)
SELECT g.id, g.dlq_id, d.name AS dlq, g.cause, coalesce(nullif(g.name, ''), g.title) AS title, g.name,
       g.title AS found_title, g.status, g.note, p.first_at, p.last_at, p.released_at, g.settled_at, g.status_by,
       g.assigned_to, g.merged_into_id, p.merged, coalesce(c.messages, 0) AS messages, coalesce(c.parked, 0) AS parked,
       g.created_at > redrive_now() - interval '1 day' AS is_new, count(*) OVER () AS total
  FROM parts p JOIN redrive_failure_group g ON g.id = p.id JOIN redrive_dlq d ON d.id = g.dlq_id
  LEFT JOIN counted c ON c.id = g.id
 WHERE (%(status)b::text IS NULL OR g.status = %(status)b::text)
   AND (%(text)b::text IS NULL
        OR position(lower(%(text)b::text) IN lower(concat_ws(' ', g.name, g.title, g.note, g.assigned_to))) > 0)
"""  # noqa: S608  # the inserted text is a constant

#: SQL of each order of the list. "new": open groups of the last 24 hours, then other open groups, then other groups.
ORDERS: Final[dict[str, LiteralString]] = {
    "new": "g.status = 'open' AND g.created_at > redrive_now() - interval '1 day' DESC, g.status = 'open' DESC, "
           "p.last_at DESC",
    "title": "lower(coalesce(nullif(g.name, ''), g.title))",
    "-title": "lower(coalesce(nullif(g.name, ''), g.title)) DESC",
    "messages": "coalesce(c.messages, 0)", "-messages": "coalesce(c.messages, 0) DESC",
    "parked": "coalesce(c.parked, 0)", "-parked": "coalesce(c.parked, 0) DESC",
    "first": "p.first_at", "-first": "p.first_at DESC", "last": "p.last_at", "-last": "p.last_at DESC",
    "dlq": "d.name", "-dlq": "d.name DESC", "status": "g.status", "-status": "g.status DESC",
    "assigned": "g.assigned_to", "-assigned": "g.assigned_to DESC",
}  # fmt: skip
_PAGES: Final = {
    name: _GROUPS + " ORDER BY " + order + ", g.id DESC LIMIT %(limit)b OFFSET %(offset)b"
    for name, order in ORDERS.items()
}

# Reads only the newest letters of each group and of the groups that are merged into it, however many letters there are.
# For each of these groups, the ids are read from an index first.
_NEWEST = """
SELECT p.id AS group_id, count(*) AS letters, count(DISTINCT l.ordering_key) AS keys, max(l.id) AS letter
  FROM unnest(%(groups)b::bigint[]) AS p(id) CROSS JOIN LATERAL (
       SELECT n.id FROM (SELECT m.id FROM redrive_failure_group m WHERE m.id = p.id OR m.merged_into_id = p.id
                          ORDER BY m.last_at DESC LIMIT %(parts)b) m
        CROSS JOIN LATERAL (
              SELECT l.id FROM redrive_letter l WHERE l.group_id = m.id ORDER BY l.id DESC LIMIT %(most)b) n
        ORDER BY n.id DESC LIMIT %(most)b) s
  JOIN redrive_letter l ON l.id = s.id
 GROUP BY 1
"""

# The newest letters of each merged group are read by index. For all groups at once, the planner would sort all letters.
_PAGE_OF_LETTERS = """
SELECT n.id FROM (SELECT id FROM redrive_failure_group
                   WHERE id = %(group)b::bigint OR merged_into_id = %(group)b::bigint) m
 CROSS JOIN LATERAL (
       SELECT l.id FROM redrive_letter l
        WHERE l.group_id = m.id AND l.id < coalesce(%(below)b::bigint, 9223372036854775807)
        ORDER BY l.id DESC LIMIT %(limit)b) n
 ORDER BY n.id DESC LIMIT %(limit)b
"""

# Reads the hours of each merged group by index. OFFSET 0 keeps the planner from reading the hours of all groups.
_HOURS = """
WITH span AS MATERIALIZED (
    SELECT redrive_now() - make_interval(secs => %(seconds)b::int * %(steps)b::int) AS start)
SELECT coalesce(m.merged_into_id, m.id) AS group_id,
       (extract(epoch FROM date_trunc(%(step)b::text, redrive_now(), 'UTC')
                           - date_trunc(%(step)b::text, h.hour, 'UTC')) / %(seconds)b::int)::int AS ago,
       sum(h.n)::bigint AS n
  FROM redrive_failure_group m CROSS JOIN span CROSS JOIN LATERAL (
       SELECT hour, n FROM redrive_group_hour WHERE group_id = m.id AND hour > span.start OFFSET 0) h
 WHERE m.id = ANY(%(groups)b::bigint[]) OR m.merged_into_id = ANY(%(groups)b::bigint[])
 GROUP BY 1, 2
"""

# Later letters in the lanes of a group's letters. They are found by two indexes: of a group's letters, and of the
# letters of a lane in order.
_FOUND: Final[LiteralString] = """
SELECT w.id FROM (
    SELECT DISTINCT ON (c.lane_id) c.lane_id, c.sequence, c.message_id
      FROM (SELECT id FROM redrive_failure_group WHERE id = g.id OR merged_into_id = g.id
             ORDER BY last_at DESC LIMIT %(parts)b) m
     CROSS JOIN LATERAL (SELECT lane_id, sequence, message_id, state, single FROM redrive_letter
                          WHERE group_id = m.id ORDER BY id DESC LIMIT %(asked)b) c
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

_ROOT = "SELECT coalesce(merged_into_id, id) FROM redrive_failure_group WHERE id = %(group)b::bigint"

_WHO = f"SELECT found.id FROM (SELECT %(group)b::bigint AS id) g CROSS JOIN LATERAL ({_FOUND}) found"  # noqa: S608  # as above


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A failure group, together with the groups that are merged into it.

    Attributes:
        title: the name that a person gave (`name`), else the title that the service found (`found_title`).
        merged: how many groups are merged into this group.
        messages: number of the group's letters, in all states.
        is_new: the group was created in the last 24 hours.
        total: the number of groups on all pages.
    """

    id: int
    dlq_id: int
    dlq: str
    cause: str
    title: str
    name: str
    found_title: str
    status: str
    note: str
    first_at: datetime
    last_at: datetime
    released_at: datetime | None
    settled_at: datetime | None
    status_by: str
    assigned_to: str
    merged_into_id: int | None
    merged: int
    messages: int
    parked: int
    is_new: bool
    total: int


@dataclass(frozen=True, slots=True)
class NewestLetters:
    """The id of a group's newest letter (`letter`), and how many different ordering keys its newest letters have.

    `keys`: the number of ordering keys. `letters`: in how many letters the keys were counted, at most 100.
    """

    group_id: int
    letters: int
    keys: int
    letter: int


@dataclass(frozen=True, slots=True)
class _Step:
    group_id: int
    ago: int
    n: int


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many letters a group has by state.

    `under_way`, `finished`: states and their numbers. `behind`: how many letters must wait, because an earlier letter
    of the same lane is in the group; 1,001 means more than 1,000.
    """

    parked: int = 0
    captured: int = 0
    under_way: tuple[tuple[str, int], ...] = ()
    finished: tuple[tuple[str, int], ...] = ()
    behind: int = 0


@dataclass(frozen=True, slots=True)
class _Behind:
    group_id: int
    n: int


def group_page(  # noqa: PLR0913  # each by its name
    *, limit: int, seen: VisibleDlqs = EVERY_DLQ, dlq: int | None = None, status: str | None = None,
    text: str | None = None, order: str = "new", offset: int = 0,
) -> list[GroupRow]:  # fmt: skip
    """Return up to `limit` failure groups in the order `order` (a key of `ORDERS`), without the first `offset` groups.

    `dlq`, `status`: only groups of this DLQ, with this status; None: any. `text`: only groups that have this text in
    title, note or assignee. `seen`: the DLQs that the person may see; groups of other DLQs are left out.
    """
    values = {
        "group": None, "dlqs": seen.array, "dlq": dlq, "status": status, "text": text, "limit": limit, "offset": offset,
    }  # fmt: skip
    return rows.fetch(GroupRow, _PAGES[order], values)


def find_group(group: int, *, seen: VisibleDlqs = EVERY_DLQ) -> GroupRow | None:
    """Return this group, or the group that it is merged into; None: no such group in a DLQ that the person may see."""
    values: dict[str, object] = dict.fromkeys(("dlq", "status", "text"))
    known = rows.column(int, _ROOT, {"group": group})
    asked = {**values, "dlqs": seen.array, "group": known[0], "limit": 1, "offset": 0} if known else None
    return rows.first(GroupRow, _PAGES["new"], asked) if asked else None


def newest_letters(groups: Sequence[int]) -> dict[int, NewestLetters]:
    """Return, for each group id, the group's newest letter, and how many ordering keys its newest letters have.

    At most 100 letters (`MAX_KEYS`) of a group are read. Groups without letters are left out.
    """
    values = {"groups": list(groups), "most": MAX_KEYS, "parts": _PARTS}
    return {row.group_id: row for row in rows.fetch(NewestLetters, _NEWEST, values)}


def letter_ids(group: int, *, below: int | None, limit: int) -> list[int]:
    """Return the ids of up to `limit` letters of a group, and of groups merged into it, the newest first.

    `below`: only letters with lower ids; None: all.
    """
    return rows.column(int, _PAGE_OF_LETTERS, {"group": group, "below": below, "limit": limit})


def letters_by_hour(groups: Sequence[int], *, days: bool) -> dict[int, list[int]]:
    """Return how many letters of each group producers sent in each of the last 24 hours, or of the last 14 days.

    The result has a list for each group id, in which the oldest hour or day comes first. `days`: count by day.
    """
    steps, seconds = (14, 86_400) if days else (24, 3_600)
    values = {"groups": list(groups), "step": "day" if days else "hour", "steps": steps, "seconds": seconds}
    found = {group: [0] * steps for group in groups}
    for step in rows.fetch(_Step, _HOURS, values):
        if 0 <= step.ago < steps and step.group_id in found:
            found[step.group_id][steps - 1 - step.ago] += max(0, step.n)
    return found


def group_counts(groups: Sequence[int]) -> dict[int, GroupCounts]:
    """Return, for each group id, how many letters the group has by state, and how many letters wait for its letters."""
    counted = counters.counts_in_groups(list(groups))
    values = {"groups": list(groups), "most": MAX_BEHIND, "asked": _ASKED, "parts": _PARTS}
    behind = {row.group_id: row.n for row in rows.fetch(_Behind, _BEHIND, values)}
    return {
        group: _numbers([(each.state, each.n) for each in counted if each.group_id == group], behind.get(group, 0))
        for group in groups
    }


def letters_behind(group: int) -> list[int]:
    """Return the ids of up to 1,001 letters that must wait because an earlier letter of their lane is in this group."""
    return rows.column(int, _WHO, {"group": group, "most": MAX_BEHIND, "asked": _ASKED, "parts": _PARTS})


def _numbers(counted: Iterable[tuple[str, int]], behind: int) -> GroupCounts:
    found = dict(counted)
    return GroupCounts(
        parked=found.get("parked", 0),
        captured=found.get("captured", 0),
        under_way=tuple((state, found[state]) for state in _UNDER_WAY if found.get(state)),
        finished=tuple((state, n) for state, n in sorted(found.items()) if n and state not in (*_REST, *_UNDER_WAY)),
        behind=behind,
    )
