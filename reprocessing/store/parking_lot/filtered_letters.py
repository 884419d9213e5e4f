"""List and count the letters that a message filter matches.

If a query takes longer than 5 seconds, it is stopped, and the function raises `InvalidFilter`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from reprocessing.domain.lifecycle import FAILS_AGAIN
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from reprocessing.store.search.filter_conditions import (
    COUNT,
    ENDED_STATES,
    parameters_within_timeout,
    plain_parameters,
    search_timeout,
    where_clause,
)

#: Letters that a filter matches are counted up to this number.
MAX_COUNT: Final = 10_000


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """A letter as lists show it, without its bytes. `key`: its ordering key. `cause`: title of its failure group."""

    id: int
    public_id: UUID
    message_id: str
    dlq_id: int
    dlq: str
    state: str
    reason: str
    key: str | None
    group_id: int | None
    cause: str | None
    first_sent_at: datetime
    expires_at: datetime | None
    finished_at: datetime | None
    attempts: int
    attempts_before_release: int
    spared: int
    max_attempts: int
    assigned_to: str
    revision_id: int | None


@dataclass(frozen=True, slots=True)
class CountByReason:
    """How many letters of a DLQ are parked for one reason, or are in another state.

    `without_lane`: how many have no ordering key or lane yet. `unchanged`: how many were parked because
    all attempts failed or by a rule, and were not edited since: they would probably fail again. `rules`: ids of the
    rules that quarantined them, which may have been deleted; None: not known, since a person chose another target.
    """

    dlq: str
    state: str
    reason: str
    n: int
    without_lane: int
    unchanged: int
    rules: list[int | None]


PageStart = tuple[datetime, int]  # the last letter shown: when it was finished, and its id

_LIST: Final[LiteralString] = """
SELECT l.id, l.public_id, l.message_id, l.dlq_id, d.name AS dlq, l.state, l.reason, l.ordering_key AS key,
       g.id AS group_id, coalesce(nullif(g.name, ''), g.title) AS cause, l.first_sent_at, CASE WHEN EXISTS (
            SELECT FROM redrive_dlq_copy c
             WHERE c.dlq_id = l.dlq_id AND c.message_id = l.message_id AND c.state NOT IN ('delete', 'gone'))
       THEN l.expires_at END AS expires_at, l.finished_at, l.attempts, l.attempts_before_release, l.spared,
       d.max_attempts, l.assigned_to, l.revision_id
  FROM ({letters}) l
  JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_failure_group m ON m.id = l.group_id
  LEFT JOIN redrive_failure_group g ON g.id = coalesce(m.merged_into_id, m.id)
 ORDER BY l.finished_at DESC, l.id DESC
"""

_NEWEST: Final[LiteralString] = """
SELECT * FROM redrive_letter l WHERE {where} ORDER BY l.finished_at DESC, l.id DESC LIMIT %(limit)b
"""

# No index has the ended letters of all DLQs by time. So the newest letters of each DLQ are read from its own index.
_NEWEST_OF_EACH_DLQ: Final[LiteralString] = f"""
SELECT l.* FROM redrive_dlq q CROSS JOIN LATERAL ({_NEWEST.format(where="l.dlq_id = q.id AND {where}")}) l
 WHERE coalesce(q.id = ANY(%(dlqs)b::bigint[]), true) ORDER BY l.finished_at DESC, l.id DESC LIMIT %(limit)b
"""  # noqa: S608  # the inserted text is a constant

_IDS: Final[LiteralString] = "SELECT l.id FROM redrive_letter l WHERE {where}"

_BEFORE: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l WHERE {where} AND (l.finished_at, l.id) > (%(at)b, %(at_id)b::bigint)
 ORDER BY l.finished_at, l.id LIMIT 1
"""

_AFTER: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l WHERE {where} AND (l.finished_at, l.id) < (%(at)b, %(at_id)b::bigint)
 ORDER BY l.finished_at DESC, l.id DESC LIMIT 1
"""

_FIRST_IDS: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l WHERE {where} ORDER BY l.finished_at DESC, l.id DESC LIMIT %(limit)b
"""

_KINDS: Final[LiteralString] = """
SELECT d.name AS dlq, l.state, l.reason, count(*) AS n, count(*) FILTER (WHERE l.lacks_lane) AS without_lane,
       count(*) FILTER (WHERE l.unchanged) AS unchanged, coalesce(array_agg(DISTINCT l.rule_id) FILTER (
           WHERE l.reason = 'quarantined'), '{{}}') AS rules
  FROM (SELECT l.dlq_id, l.state, l.reason, l.rule_id,
               l.state = 'parked' AND l.reason = ANY(%(fails_again)b::text[]) AND NOT EXISTS (
                   SELECT FROM redrive_revision r WHERE r.id = l.revision_id AND r.at >= l.finished_at) AS unchanged,
               l.lane_id IS NULL AND l.key_hash IS NULL AND l.source_id IS NOT NULL AS lacks_lane
          FROM redrive_letter l
         WHERE {where} AND coalesce(l.finished_at <= %(until)b::timestamptz, true) LIMIT %(limit)b) l
  JOIN redrive_dlq d ON d.id = l.dlq_id
 GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class LetterPage:
    """One page of letters, and the number of letters on all pages; 10,001 means more than 10,000."""

    letters: list[ListedLetter]
    n: int


def letter_page(criteria: MessageFilter, *, below: PageStart | None, limit: int) -> LetterPage:
    """Return a page of letters that a filter matches, the last finished first.

    `below`: the last letter of the previous page; None: return the first page.
    """
    with search_timeout():
        if criteria.reads_bodies:
            return _of_bodies(criteria, below, limit)
        narrow = _where_reasons_are(criteria)
        if narrow is None:
            return LetterPage([], 0)
        found = _newest(narrow, below, limit)
        return LetterPage(found, len(found) if below is None and len(found) < limit else _count(criteria))


def newest_letters(criteria: MessageFilter, *, limit: int) -> list[ListedLetter]:
    """Return up to `limit` letters that a filter matches, the last finished first."""
    with search_timeout():
        return _newest(criteria, None, limit)


def neighbours(criteria: MessageFilter, at: PageStart) -> tuple[int | None, int | None]:
    """Return the ids of the previous and the next letter in the list of this filter; None: there is no such letter.

    `at`: the letter between them: when it was finished, and its id. Call this function inside `search_timeout`.
    """
    narrow = _where_reasons_are(criteria)
    if narrow is None:
        return None, None
    asked = parameters_within_timeout(narrow) | {"at": at[0], "at_id": at[1]}
    where = where_clause(narrow)
    before, after = (rows.column(int, side.format(where=where), asked) for side in (_BEFORE, _AFTER))
    return next(iter(before), None), next(iter(after), None)


def newest_ids(criteria: MessageFilter, *, limit: int) -> list[int]:
    """Return the ids of up to `limit` letters that a filter matches, the last finished first."""
    with search_timeout():
        asked = parameters_within_timeout(criteria) | {"limit": limit}
        return rows.column(int, _FIRST_IDS.format(where=where_clause(criteria)), asked)


def counts_by_reason(criteria: MessageFilter, *, until: datetime | None = None) -> list[CountByReason]:
    """Return how many letters a filter matches, by DLQ, state and reason; at most 10,001 letters are counted in all.

    `until`: letters that finished later are not counted; None: all are counted.
    """
    with search_timeout():
        asked = parameters_within_timeout(criteria) | {
            "limit": MAX_COUNT + 1, "until": until, "fails_again": list(FAILS_AGAIN),
        }  # fmt: skip
        return rows.fetch(CountByReason, _KINDS.format(where=where_clause(criteria)), asked)


def count_letters(criteria: MessageFilter) -> int:
    """Return how many letters a filter matches; 10,001 means more than 10,000."""
    with search_timeout():
        return _count(criteria)


def counted(n: int) -> str:
    """Return a number of letters as text, such as "9,999", or "10,000+" if it is larger than 10,000."""
    return f"{n:,}" if n <= MAX_COUNT else f"{MAX_COUNT:,}+"


def _where_reasons_are(criteria: MessageFilter) -> MessageFilter | None:
    """Return the filter, limited to one DLQ if no other DLQ has letters parked for the filter's reasons.

    PostgreSQL can use an index if the filter has a DLQ. None: no letter is parked for these reasons.
    """
    if not criteria.reasons or criteria.dlq is not None or criteria.states != ("parked",):
        return criteria
    dlqs = {
        kind.dlq_id
        for kind in counters.counts_by_state()
        if kind.state == "parked"
        and kind.reason in criteria.reasons
        and kind.n > 0
        and (criteria.dlqs is None or kind.dlq_id in criteria.dlqs)
    }
    if len(dlqs) > 1:
        return criteria
    return replace(criteria, dlq=dlqs.pop()) if dlqs else None


def _of_bodies(criteria: MessageFilter, below: PageStart | None, limit: int) -> LetterPage:
    """Return a page for a filter that reads bodies. The bodies are searched once, for both the page and the count."""
    held = rows.column(int, _IDS.format(where=where_clause(criteria)), parameters_within_timeout(criteria))
    return LetterPage(_newest(criteria, below, limit, among=held), min(len(held), MAX_COUNT + 1))


def _newest(
    criteria: MessageFilter, below: PageStart | None, limit: int, *, among: list[int] | None = None
) -> list[ListedLetter]:
    place = " AND (l.finished_at, l.id) < (%(below_at)b, %(below_id)b::bigint)" if below else ""
    asked = (parameters_within_timeout(criteria) if among is None else plain_parameters(criteria)) | {
        "limit": limit, "below_at": below and below[0], "below_id": below and below[1], "among": among,
    }  # fmt: skip
    if among is not None:
        letters = _NEWEST.format(where="l.id = ANY(%(among)b::bigint[])" + place)
    elif _is_read_by_dlq(criteria):
        letters = _NEWEST_OF_EACH_DLQ.format(where=where_clause(replace(criteria, dlqs=None)) + place)
    else:
        letters = _NEWEST.format(where=where_clause(criteria) + place)
    return rows.fetch(ListedLetter, _LIST.format(letters=letters), asked)


def _is_read_by_dlq(criteria: MessageFilter) -> bool:
    """Return whether the filter matches ended letters of all DLQs, and has no condition with an index of its own."""
    without = replace(
        criteria, presumed=None, sent_after=None, sent_before=None, finished_after=None, finished_before=None
    )
    return bool(criteria.states) and ENDED_STATES.issuperset(criteria.states) and not without.is_narrow


def _count(criteria: MessageFilter) -> int:
    asked = parameters_within_timeout(criteria) | {"limit": MAX_COUNT + 1}
    return rows.value(int, COUNT.format(where=where_clause(criteria)), asked)
