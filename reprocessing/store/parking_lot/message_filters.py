"""Turn a message filter into a SQL condition. Lists, counts, previews, bulk actions and exports use the condition.

A query that takes longer than 5 seconds raises `InvalidFilter`. Values are always parameters. States are literals, so
that PostgreSQL uses the partial indexes of the parking lot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
from django.db import OperationalError, transaction

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.field_value import read_field
from reprocessing.domain.parking_lot.message_filter import SEARCHED_LETTERS, MessageFilter
from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from reprocessing.store.parking_lot import field_values
from reprocessing.store.payloads import payload_keys, sealed_search
from reprocessing.store.payloads.content import IS_SEALED
from reprocessing.store.search import field_conditions

#: Letters that a filter matches are counted up to this number.
MAX_COUNT: Final = 10_000
#: Milliseconds after which a query is stopped, because a person waits for its result.
_PATIENCE: Final = 5_000

_STATES: Final[dict[str, LiteralString]] = {
    "captured": "'captured'", "waiting": "'waiting'", "sending": "'sending'", "awaiting": "'awaiting'",
    "delivered": "'delivered'", "parked": "'parked'", "duplicate": "'duplicate'", "discarded": "'discarded'",
}  # fmt: skip

_CONDITIONS: Final[dict[str, LiteralString]] = {
    "dlq": "l.dlq_id = %(dlq)b::bigint",
    "reasons": "l.reason = ANY(%(reasons)b::text[])",
    # For one DLQ, the index of its parked letters is used; without it, the newest letters of all DLQs are searched.
    "group": """l.group_id = ANY(ARRAY(SELECT m.id FROM redrive_failure_group m
                                         WHERE m.id = %(group)b::bigint OR m.merged_into_id = %(group)b::bigint))
        AND l.dlq_id = (SELECT x.dlq_id FROM redrive_failure_group x WHERE x.id = %(group)b::bigint)""",
    "source": "l.source_id = %(source)b::bigint",
    "target": "l.target_id = %(target)b::bigint",
    "key": "l.ordering_key = %(key)b::text",
    "died_after": "l.first_sent_at >= %(died_after)b",
    "died_before": "l.first_sent_at < %(died_before)b",
    "finished_after": "l.finished_at >= %(finished_after)b",
    "finished_before": "l.finished_at < %(finished_before)b",
    "assigned": "l.assigned_to = %(assigned)b::text",
    "rule": "l.rule_id = %(rule)b::bigint",
    "run": "l.run_id = %(run)b::bigint",
    # Each part of the condition uses an index.
    "named": f"""l.id IN (
        SELECT x.id FROM redrive_letter x
         WHERE x.dlq_id IN (SELECT id FROM redrive_dlq) AND x.message_id = %(named)b::text
        UNION ALL SELECT x.id FROM redrive_letter x WHERE x.public_id = %(public)b::uuid
        UNION ALL {field_conditions.OF_KEY.format(key="%(named)b::text")}
        UNION ALL {field_conditions.NAMED})""",  # noqa: S608  # the inserted texts are constants
}

# Reads bodies only where all other conditions hold: with EXISTS the planner would read all.
_HOLDS: Final[LiteralString] = f"""(
    (SELECT NOT {IS_SEALED.format("p.body")} AND position(%(text)b::bytea IN p.body) > 0
       FROM redrive_payload p WHERE p.letter_id = l.id)
 OR (SELECT NOT {IS_SEALED.format("v.body")} AND position(%(text)b::bytea IN v.body) > 0
       FROM redrive_revision v WHERE v.id = l.revision_id)
 OR l.id = ANY(%(sealed_with_text)b::bigint[]))
"""  # noqa: S608  # the inserted text is a constant

_IN_THE_NEWEST: Final[LiteralString] = f"""l.id IN (
    SELECT l.id FROM (SELECT l.id, l.revision_id FROM redrive_letter l WHERE {{rest}}
                       ORDER BY {{order}} LIMIT %(newest)b) l
     WHERE {_HOLDS})
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """A letter as it is shown in lists, without its bytes."""

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
    assigned_to: str
    revision_id: int | None


@dataclass(frozen=True, slots=True)
class CountByReason:
    """How many letters of a DLQ are parked for one reason, or are in another state.

    `strays`: how many of these letters have no ordering key or lane yet.
    """

    dlq: str
    state: str
    reason: str
    n: int
    strays: int


PageStart = tuple[datetime, int]  # the last letter shown: when it was finished, and its id

_LIST: Final[LiteralString] = """
SELECT l.id, l.public_id, l.message_id, l.dlq_id, d.name AS dlq, l.state, l.reason, l.ordering_key AS key,
       g.id AS group_id, coalesce(nullif(g.name, ''), g.title) AS cause, l.first_sent_at, CASE WHEN EXISTS (
            SELECT FROM redrive_dlq_copy c
             WHERE c.dlq_id = l.dlq_id AND c.message_id = l.message_id AND c.state NOT IN ('delete', 'gone'))
       THEN l.expires_at END AS expires_at, l.finished_at, l.attempts, l.assigned_to, l.revision_id
  FROM (SELECT * FROM redrive_letter l WHERE {where} ORDER BY l.finished_at DESC, l.id DESC LIMIT %(limit)b) l
  JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_failure_group m ON m.id = l.group_id
  LEFT JOIN redrive_failure_group g ON g.id = coalesce(m.merged_into_id, m.id)
 ORDER BY l.finished_at DESC, l.id DESC
"""

_IDS: Final[LiteralString] = "SELECT l.id FROM redrive_letter l WHERE {where}"

_NEWEST_IDS: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l WHERE {where} ORDER BY {order} LIMIT %(newest)b
"""

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
SELECT d.name AS dlq, l.state, l.reason, count(*) AS n, count(*) FILTER (WHERE l.stray) AS strays
  FROM (SELECT l.dlq_id, l.state, l.reason,
               l.lane_id IS NULL AND l.key_hash IS NULL AND l.source_id IS NOT NULL AS stray
          FROM redrive_letter l WHERE {where} LIMIT %(limit)b) l
  JOIN redrive_dlq d ON d.id = l.dlq_id
 GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3
"""

_COUNT: Final[LiteralString] = """
SELECT count(*) AS n FROM (SELECT FROM redrive_letter l WHERE {where} LIMIT %(limit)b) l
"""


def where_clause(sieve: MessageFilter, *, whole: bool = False) -> LiteralString:
    """Return the SQL condition on a letter `l`. `whole`: search all bodies, not only of the newest 20,000 letters."""
    parts: list[LiteralString] = []
    if sieve.states:
        parts.append("l.state IN (" + ", ".join(_STATES[state] for state in sieve.states) + ")")
    parts += [said for name, said in _CONDITIONS.items() if getattr(sieve, name) not in {None, ()}]
    if sieve.key is not None and not sieve.states and not whole:  # among letters of all states, an index is needed
        parts.append(f"l.id IN ({field_conditions.OF_KEY.format(key='%(key)b::text')})")
    if sieve.dlqs is not None:  # also if there are none: then nothing matches
        parts.append("l.dlq_id = ANY(%(dlqs)b::bigint[])")
    parts += field_conditions.where_parts(sieve)
    if sieve.letters is not None:
        parts.append("l.id = ANY(%(letters)b::bigint[])")
    if sieve.selector is not None:
        parts.append("l.id = ANY(%(with_value)b::bigint[])")
    rest = " AND ".join(parts or ["true"])
    if sieve.text is None:
        return rest
    if whole:
        return rest + " AND " + _HOLDS
    return _IN_THE_NEWEST.format(rest=rest, order=newest_first(sieve))


def newest_first(sieve: MessageFilter) -> LiteralString:
    """Return the SQL order in which bodies are searched. An index has it; for letters of any state, the primary key."""
    return "l.finished_at DESC, l.id DESC" if sieve.states else "l.id DESC"


def sql_parameters(sieve: MessageFilter, *, seconds: float | None = None) -> dict[str, Any]:
    """Return the parameters of `where_clause`. This reads the field at `selector`, and searches encrypted bodies.

    Raises:
        InvalidFilter: the search took longer than `seconds` (None: there is no limit).
    """
    found = _plain_parameters(sieve)
    searches_sealed = sieve.text is not None and payload_keys.has_keys()
    if sieve.selector is None and not searches_sealed:
        return found
    where = where_clause(sieve.without_bodies())
    among = rows.column(int, _NEWEST_IDS.format(where=where, order=newest_first(sieve)), found)
    if sieve.selector is not None:
        among = field_values.letters_with(read_field(sieve.selector), sieve.value, among, seconds=seconds)
        found["with_value"] = among
    if sieve.text is not None and searches_sealed:
        found["sealed_with_text"] = sealed_search.sealed_letters_with(sieve.text.encode(), among, seconds=seconds)
    return found


def _plain_parameters(sieve: MessageFilter) -> dict[str, Any]:
    every: dict[str, Any] = {name: getattr(sieve, name) for name in _CONDITIONS} | field_conditions.parameters(sieve)
    return every | {
        "reasons": list(sieve.reasons), "public": _uuid(sieve.named),
        "dlqs": None if sieve.dlqs is None else list(sieve.dlqs),
        "letters": None if sieve.letters is None else list(sieve.letters),
        "text": None if sieve.text is None else sieve.text.encode(), "newest": SEARCHED_LETTERS,
        "sealed_with_text": [], "with_value": [],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LetterPage:
    """One page of letters, and the number of letters on all pages; 10,001 means more than 10,000."""

    letters: list[ListedLetter]
    n: int


def letter_page(sieve: MessageFilter, *, below: PageStart | None, limit: int) -> LetterPage:
    """Return a page of letters that a filter matches, the last finished first.

    `below`: the last letter of the previous page; None: return the first page.
    """
    with patiently():
        if sieve.reads_bodies:
            return _of_bodies(sieve, below, limit)
        narrow = _where_reasons_are(sieve)
        if narrow is None:
            return LetterPage([], 0)
        found = _newest(narrow, below, limit)
        return LetterPage(found, len(found) if below is None and len(found) < limit else _count(sieve))


def newest_letters(sieve: MessageFilter, *, limit: int) -> list[ListedLetter]:
    """Return up to `limit` letters that a filter matches, the last finished first."""
    with patiently():
        return _newest(sieve, None, limit)


def neighbours(sieve: MessageFilter, at: PageStart) -> tuple[int | None, int | None]:
    """Return the ids of the letters that a list with this filter shows before and after a letter; None: there is none.

    `at`: when the letter was finished, and its id. Use it inside `patiently`.
    """
    narrow = _where_reasons_are(sieve)
    if narrow is None:
        return None, None
    asked = patient_parameters(narrow) | {"at": at[0], "at_id": at[1]}
    where = where_clause(narrow)
    before, after = (rows.column(int, side.format(where=where), asked) for side in (_BEFORE, _AFTER))
    return next(iter(before), None), next(iter(after), None)


def newest_ids(sieve: MessageFilter, *, limit: int) -> list[int]:
    """Return the ids of up to `limit` letters that a filter matches, the last finished first."""
    with patiently():
        asked = patient_parameters(sieve) | {"limit": limit}
        return rows.column(int, _FIRST_IDS.format(where=where_clause(sieve)), asked)


def counts_by_reason(sieve: MessageFilter) -> list[CountByReason]:
    """Return how many letters a filter matches, by DLQ, state and reason; at most 10,001 letters are counted in all."""
    with patiently():
        asked = patient_parameters(sieve) | {"limit": MAX_COUNT + 1}
        return rows.fetch(CountByReason, _KINDS.format(where=where_clause(sieve)), asked)


def count_letters(sieve: MessageFilter) -> int:
    """Return how many letters a filter matches; 10,001 means more than 10,000."""
    with patiently():
        return _count(sieve)


def counted(n: int) -> str:
    """Return a number of letters as text, such as "9,999", or "10,000+" if it is larger than 10,000."""
    return f"{n:,}" if n <= MAX_COUNT else f"{MAX_COUNT:,}+"


def is_exhaustive(sieve: MessageFilter) -> bool:
    """Return whether all letters that could match are searched, if the filter reads bodies: not only the newest."""
    if not sieve.reads_bodies:
        return True
    asked = _plain_parameters(sieve) | {"text": None, "limit": SEARCHED_LETTERS + 1}
    without = where_clause(sieve.without_bodies())
    with patiently():
        return rows.value(int, _COUNT.format(where=without), asked) <= SEARCHED_LETTERS


def require_exhaustive(sieve: MessageFilter) -> None:
    """Refuse a filter that reads bodies, and could match letters that are not searched, as they are not the newest.

    Raises:
        InvalidFilter: there are more letters that may have the text (see `is_exhaustive`).
    """
    if not is_exhaustive(sieve):
        raise InvalidFilter(
            f"A text is searched for only in the newest {SEARCHED_LETTERS:,} messages, and there are more. Narrow the "
            "filter by DLQ, reason or dates, so that all matching messages are searched."
        )


def _where_reasons_are(sieve: MessageFilter) -> MessageFilter | None:
    """Return the filter, limited to one DLQ if only this DLQ has letters with the filter's reasons; None: no DLQ has.

    For a single DLQ, PostgreSQL can use an index.
    """
    if not sieve.reasons or sieve.dlq is not None or sieve.states != ("parked",):
        return sieve
    dlqs = {
        kind.dlq_id
        for kind in counters.counts_by_state()
        if kind.state == "parked"
        and kind.reason in sieve.reasons
        and kind.n > 0
        and (sieve.dlqs is None or kind.dlq_id in sieve.dlqs)
    }
    if len(dlqs) > 1:
        return sieve
    return replace(sieve, dlq=dlqs.pop()) if dlqs else None


def _of_bodies(sieve: MessageFilter, below: PageStart | None, limit: int) -> LetterPage:
    """Return a page for a filter that reads bodies; they are searched once, for the page and the count."""
    held = rows.column(int, _IDS.format(where=where_clause(sieve)), patient_parameters(sieve))
    return LetterPage(_newest(sieve, below, limit, among=held), min(len(held), MAX_COUNT + 1))


def _newest(
    sieve: MessageFilter, below: PageStart | None, limit: int, *, among: list[int] | None = None
) -> list[ListedLetter]:
    place = " AND (l.finished_at, l.id) < (%(below_at)b, %(below_id)b::bigint)" if below else ""
    asked = (patient_parameters(sieve) if among is None else _plain_parameters(sieve)) | {
        "limit": limit, "below_at": below and below[0], "below_id": below and below[1], "among": among,
    }  # fmt: skip
    meant = where_clause(sieve) if among is None else "l.id = ANY(%(among)b::bigint[])"
    return rows.fetch(ListedLetter, _LIST.format(where=meant + place), asked)


def _count(sieve: MessageFilter) -> int:
    asked = patient_parameters(sieve) | {"limit": MAX_COUNT + 1}
    return rows.value(int, _COUNT.format(where=where_clause(sieve)), asked)


def patient_parameters(sieve: MessageFilter) -> dict[str, Any]:
    """Return the parameters of `where_clause`, as `sql_parameters` does within 5 seconds. Raises InvalidFilter."""
    return sql_parameters(sieve, seconds=_PATIENCE / 1_000)


@contextmanager
def patiently(milliseconds: int | None = None) -> Iterator[None]:
    """Set a statement timeout for queries in the block; a query that takes longer raises InvalidFilter.

    `milliseconds`: the timeout; None: 5 seconds.
    """
    milliseconds = milliseconds or _PATIENCE
    try:
        with transaction.atomic():
            rows.execute("SELECT set_config('statement_timeout', %(most)b, true)", {"most": str(milliseconds)})
            yield
            rows.execute("SET LOCAL statement_timeout TO DEFAULT", {})
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise
        raise InvalidFilter(
            f"The search took longer than {milliseconds / 1_000:g} seconds and was stopped. Narrow the filter by DLQ, "
            "group or dates."
        ) from error


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
