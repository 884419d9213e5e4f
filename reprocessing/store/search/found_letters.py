"""Find letters of any state by a message filter: a page of them, and their number by state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString

from reprocessing.domain.parking_lot.failure_fingerprint import TYPE_CAUSES
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store import rows
from reprocessing.store.parking_lot.filtered_letters import MAX_COUNT
from reprocessing.store.search import filter_conditions

#: Letters that an index finds by an id, a key or a value are counted up to this number: each one is read for it.
MAX_INDEXED: Final = 1_000

_COUNTS: Final[LiteralString] = """
SELECT l.state, count(*) AS n
  FROM (SELECT l.state FROM {letters} WHERE {where} LIMIT %(most)b) l GROUP BY 1 ORDER BY 2 DESC, 1
"""

_LIST: Final[LiteralString] = """
SELECT l.id, l.message_id, d.name AS dlq, l.state, l.presumed, l.reason, l.ordering_key AS key, l.attempts,
       l.attempts_before_release, l.spared, d.max_attempts, l.first_sent_at, l.finished_at,
       CASE WHEN g.cause = ANY(%(type_causes)b::text[]) THEN g.title ELSE '' END AS type
  FROM (SELECT l.* FROM {letters} WHERE {where}{place} ORDER BY {order} LIMIT %(limit)b) l
  JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_failure_group g ON g.id = l.group_id
 ORDER BY l.id DESC
"""

_IDS: Final[LiteralString] = "SELECT l.id FROM redrive_letter l WHERE {where}"

_NEWEST: Final[LiteralString] = """
SELECT l.id FROM {letters} WHERE {where} ORDER BY {order} LIMIT %(limit)b
"""

_SCANNED: Final[LiteralString] = """
SELECT count(*) AS n, min(x.captured_at) AS since
  FROM (SELECT l.captured_at FROM redrive_letter l WHERE {where} ORDER BY {order} LIMIT %(newest)b) x
"""


@dataclass(frozen=True, slots=True)
class FoundLetter:
    """A letter that a search found, without its bytes.

    `type`: its message type, such as order.paid, or its Celery task, as its failure group has it; empty: not known.
    """

    id: int
    message_id: str
    dlq: str
    state: str
    presumed: bool
    reason: str
    key: str | None
    attempts: int
    attempts_before_release: int
    spared: int
    max_attempts: int
    first_sent_at: datetime
    finished_at: datetime | None
    type: str


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many of the letters that a search found are in a state."""

    state: str
    n: int


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of letters that match a filter, and how many letters match.

    `n`: the number of letters that match, or that were counted. `counts`: this number by state. None: more than `n`
    letters match, and their states are not known.
    """

    letters: list[FoundLetter]
    n: int
    counts: list[StateCount] | None


@dataclass(frozen=True, slots=True)
class Scan:
    """In how many letters a text was searched, and when the oldest of these letters was captured (None: no letters)."""

    n: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a statement finds letters `l`: its FROM and WHERE. `id`: the column by which PostgreSQL reads letters.

    `most`: up to how many letters are counted.
    `sorted`: the order by the id. For the index of all letters' ids it is a sum (`id + 0`), so that PostgreSQL first
    finds the letters and then sorts them. Otherwise it might read all letters until it finds the few that match.
    """

    letters: LiteralString
    where: LiteralString
    most: int
    id: LiteralString = "l.id"
    sorted: LiteralString = "(l.id + 0) DESC"

    def statement(self, text: LiteralString, *, below: int | None = None, is_few: bool = True) -> LiteralString:
        """Return a statement that reads these letters. `below`: only letters with lower ids than the parameter.

        `is_few`: whether few letters match, so that they are found first, and then sorted.
        """
        place: LiteralString = "" if below is None else " AND " + self.id + " < %(below)b::bigint"
        order = self.sorted if is_few else self.id + " DESC"
        return text.format(letters=self.letters, where=self.where, place=place, order=order)


# The ids are sorted before the letters are read, so that PostgreSQL stops at the first letters that it needs. Sorted by
# the index of all letters' ids, PostgreSQL might read all letters until it finds them.
_INDEXED: Final[LiteralString] = """
(SELECT DISTINCT i.id FROM ({ids}) i ORDER BY i.id DESC) c JOIN redrive_letter l ON l.id = c.id
"""
_ALL: Final[LiteralString] = "redrive_letter l"
_AMONG: Final[LiteralString] = "l.id = ANY(%(among)b::bigint[])"


def find_letters(criteria: MessageFilter, *, below: int | None, limit: int) -> FoundPage:
    """Return a page of up to `limit` letters that a filter matches, the last captured first.

    `below`: only letters with lower ids, for the next page; None: the first page.

    Raises:
        InvalidFilter: the search took longer than 5 seconds.
    """
    with filter_conditions.search_timeout():
        asked, source = filter_conditions.parameters_within_timeout(criteria), _source(criteria)
        if criteria.text is not None:  # the bodies are scanned once, for the page and the counts
            source, asked = _Source(_ALL, _AMONG, MAX_COUNT), {"among": rows.column(int, source.statement(_IDS), asked)}
        return _page(source, asked, below, limit)


def newest_ids(criteria: MessageFilter, *, limit: int) -> list[int]:
    """Return the ids of the newest letters that a filter matches, at most `limit`.

    Raises InvalidFilter if the search took longer than 5 seconds.
    """
    with filter_conditions.search_timeout():
        asked = filter_conditions.parameters_within_timeout(criteria) | {"limit": limit}
        return rows.column(int, _source(criteria).statement(_NEWEST), asked)


def scanned(criteria: MessageFilter) -> Scan:
    """Return in how many letters a filter's text is searched: the newest letters that match the other conditions."""
    rest = replace(criteria, text=None)
    with filter_conditions.search_timeout():
        where, order = filter_conditions.where_clause(rest), filter_conditions.newest_first(rest)
        asked = filter_conditions.parameters_within_timeout(rest)
        return rows.fetch(Scan, _SCANNED.format(where=where, order=order), asked)[0]


def _source(criteria: MessageFilter) -> _Source:
    indexed = None if criteria.text is not None else filter_conditions.indexed_ids(criteria)
    if indexed is None:
        return _Source(_ALL, filter_conditions.where_clause(criteria), MAX_COUNT)
    ids, where = indexed
    return _Source(_INDEXED.format(ids=ids), where, MAX_INDEXED, "c.id", "c.id DESC")


def _page(source: _Source, asked: dict[str, Any], below: int | None, limit: int) -> FoundPage:
    counts = rows.fetch(StateCount, source.statement(_COUNTS), asked | {"most": source.most + 1})
    n = sum(count.n for count in counts)
    if not n:
        return FoundPage([], 0, [])
    are_all = n <= source.most
    more = asked | {"below": below, "limit": limit, "type_causes": list(TYPE_CAUSES)}
    letters = rows.fetch(FoundLetter, source.statement(_LIST, below=below, is_few=are_all), more)
    return FoundPage(letters, min(n, source.most), counts if are_all else None)
