"""Turn a message filter into a SQL condition on a letter `l`, for lists, counts, bulk actions and exports.

Values are always parameters. States are literals, so that PostgreSQL uses the partial indexes of the parking lot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
from django.db import OperationalError, transaction

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState
from reprocessing.domain.parking_lot.field_value import read_field
from reprocessing.domain.parking_lot.message_filter import SEARCHED_LETTERS, MessageFilter
from reprocessing.store import rows
from reprocessing.store.parking_lot import field_values
from reprocessing.store.payloads import payload_keys, sealed_search
from reprocessing.store.payloads.content import IS_SEALED
from reprocessing.store.search import field_conditions

#: Milliseconds after which a query is stopped, because a person waits for its result.
_SEARCH_TIMEOUT_MS: Final = 5_000

# Each search is planned for its values: a value may be that of one letter, or of a million letters.
_LIMIT: Final = """
SELECT set_config('statement_timeout', %(most)b, true), set_config('plan_cache_mode', 'force_custom_plan', true)
"""
_NO_LIMIT: Final = ("SET LOCAL statement_timeout TO DEFAULT", "SET LOCAL plan_cache_mode TO DEFAULT")
#: The timeout (ms) of the block `search_timeout` in which this code runs; 0: none.
_present_timeout: ContextVar[int] = ContextVar("_present_timeout", default=0)

_STATES: Final[dict[str, LiteralString]] = {
    "captured": "'captured'", "waiting": "'waiting'", "sending": "'sending'", "awaiting": "'awaiting'",
    "delivered": "'delivered'", "parked": "'parked'", "duplicate": "'duplicate'", "discarded": "'discarded'",
}  # fmt: skip

#: States of finished letters that are not parked.
ENDED_STATES: Final = frozenset(FINISHED_STATES) - {LetterState.PARKED}

# Each part uses an index.
_NAMED: Final[LiteralString] = f"""
SELECT x.id FROM redrive_letter x
 WHERE x.dlq_id IN (SELECT id FROM redrive_dlq) AND x.message_id = %(named)b::text
UNION ALL SELECT x.id FROM redrive_letter x WHERE x.public_id = %(public)b::uuid
UNION ALL {field_conditions.OF_KEY.format(key="%(named)b::text")}
UNION ALL {field_conditions.NAMED}
"""  # noqa: S608  # the inserted texts are constants

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
    "sent_after": "l.first_sent_at >= %(sent_after)b",
    "sent_before": "l.first_sent_at < %(sent_before)b",
    "finished_after": "l.finished_at >= %(finished_after)b",
    "finished_before": "l.finished_at < %(finished_before)b",
    "assigned": "l.assigned_to = %(assigned)b::text",
    "rule": "l.rule_id = %(rule)b::bigint",
    "run": "l.run_id = %(run)b::bigint",
    "named": f"l.id IN ({_NAMED})",
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

_NEWEST_IDS: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l WHERE {where} ORDER BY {order} LIMIT %(newest)b
"""

# Grouping a letter again sets `grouped_at` to NULL, and then to the new time. Discarded letters are not grouped again.
_IN_GROUP_AT: Final[LiteralString] = """
   AND (l.grouped_at <= {at} OR l.state = 'discarded')
   AND l.group_id = ANY(ARRAY(
       SELECT m.id FROM redrive_failure_group m
        WHERE m.id = %(group)b::bigint OR (m.merged_into_id = %(group)b::bigint AND m.merged_at <= {at})))
"""

#: SQL: counts the letters that fulfil the condition `where`, up to `limit`.
COUNT: Final[LiteralString] = """
SELECT count(*) AS n FROM (SELECT FROM redrive_letter l WHERE {where} LIMIT %(limit)b) l
"""


def where_clause(criteria: MessageFilter, *, whole: bool = False, has_key_index: bool = False) -> LiteralString:
    """Return the SQL condition that is true of a letter `l` which the filter matches.

    `whole`: search all bodies, not only those of the newest 20,000 letters.
    """
    parts = _state_conditions(criteria.states)
    if criteria.presumed:
        parts.append("(l.state <> 'delivered' OR l.presumed)")
    parts += [said for name, said in _CONDITIONS.items() if getattr(criteria, name) not in {None, ()}]
    # Among letters of all states, an index is needed.
    if criteria.key is not None and not criteria.states and not whole and not has_key_index:
        parts.append(f"l.id IN ({field_conditions.OF_KEY.format(key='%(key)b::text')})")
    if criteria.dlqs is not None:  # also if there are none: then nothing matches
        parts.append("l.dlq_id = ANY(%(dlqs)b::bigint[])")
    parts += [f"l.id IN ({ids})" for ids in field_conditions.ids_by_condition(criteria)]
    if criteria.letters is not None:
        parts.append("l.id = ANY(%(letters)b::bigint[])")
    if criteria.selector is not None:
        parts.append("l.id = ANY(%(with_value)b::bigint[])")
    rest = " AND ".join(parts or ["true"])
    if criteria.text is None:
        return rest
    if whole:
        return rest + " AND " + _HOLDS
    return _IN_THE_NEWEST.format(rest=rest, order=newest_first(criteria))


def _state_conditions(states: Sequence[str]) -> list[LiteralString]:
    """Return the SQL conditions that a letter `l` has one of these states.

    The indexes of unfinished letters, and those of ended letters, have a condition on `finished_at`. PostgreSQL uses
    them only if a statement has this condition too.
    """
    if not states:
        return []
    found: list[LiteralString] = ["l.state IN (" + ", ".join(_STATES[state] for state in states) + ")"]
    if not any(state in FINISHED_STATES for state in states):
        found.append("l.finished_at IS NULL")
    elif ENDED_STATES.issuperset(states):
        found.append("l.finished_at IS NOT NULL")
    return found


def indexed_ids(criteria: MessageFilter) -> tuple[LiteralString, LiteralString] | None:
    """Return SQL that selects ids of letters by an index, and the SQL condition that letters `l` must also fulfil.

    The ids are those of the letters that fulfil all conditions of these kinds: an id, values of search fields, and,
    among letters of all states, an ordering key. None: the filter has no such condition. The parameters of the SQL are
    those of the whole filter. An id may be selected twice.
    """
    found = field_conditions.ids_by_condition(criteria)
    if criteria.named is not None:
        found.append(_NAMED)
    if criteria.key is not None and not criteria.states:
        found.append(field_conditions.OF_KEY.format(key="%(key)b::text"))
    if not found:
        return None
    *others, ids = found
    among = " AND ".join([f"x.id IN ({other})" for other in others] or ["true"])
    where = where_clause(replace(criteria, named=None, fields=()), has_key_index=True)
    return f"SELECT x.id FROM ({ids}) x(id) WHERE {among}", where  # noqa: S608  # the parts are constants


def where_clause_at(criteria: MessageFilter, at: LiteralString) -> LiteralString:
    """Return the SQL condition of a bulk action on a letter `l`. All bodies are searched.

    `at`: SQL of the time at which a person saw the letters. Letters that joined the filter's failure group after this
    time do not match, and neither do letters of groups that were merged into it later. For discarded letters, the time
    is not checked, because they do not change their group.
    """
    where = where_clause(criteria, whole=True)
    return where if criteria.group is None else where + _IN_GROUP_AT.format(at=at)


def newest_first(criteria: MessageFilter) -> LiteralString:
    """Return the SQL order in which bodies are searched: the newest first, in the order of an index."""
    return "l.finished_at DESC, l.id DESC" if criteria.states else "l.id DESC"


def sql_parameters(criteria: MessageFilter, *, seconds: float | None = None) -> dict[str, Any]:
    """Return the values of the SQL parameters in `where_clause`, by name.

    This function itself finds the letters with a value in the field `selector`, and searches encrypted bodies, because
    PostgreSQL cannot. The ids of these letters are parameters.

    Raises:
        InvalidFilter: reading and searching took longer than `seconds` (None: there is no limit).
    """
    found = plain_parameters(criteria)
    searches_sealed = criteria.text is not None and payload_keys.has_keys()
    if criteria.selector is None and not searches_sealed:
        return found
    where = where_clause(criteria.without_bodies())
    among = rows.column(int, _NEWEST_IDS.format(where=where, order=newest_first(criteria)), found)
    if criteria.selector is not None:
        among = field_values.letters_with(read_field(criteria.selector), criteria.value, among, seconds=seconds)
        found["with_value"] = among
    if criteria.text is not None and searches_sealed:
        found["sealed_with_text"] = sealed_search.sealed_letters_with(criteria.text.encode(), among, seconds=seconds)
    return found


def plain_parameters(criteria: MessageFilter) -> dict[str, Any]:
    """Return parameters as `sql_parameters` does, without those for which bodies or fields of messages are read."""
    every: dict[str, Any] = {name: getattr(criteria, name) for name in _CONDITIONS} | field_conditions.parameters(
        criteria
    )
    return every | {
        "reasons": list(criteria.reasons), "public": _uuid(criteria.named),
        "dlqs": None if criteria.dlqs is None else list(criteria.dlqs),
        "letters": None if criteria.letters is None else list(criteria.letters),
        "text": None if criteria.text is None else criteria.text.encode(), "newest": SEARCHED_LETTERS,
        "sealed_with_text": [], "with_value": [],
    }  # fmt: skip


def is_exhaustive(criteria: MessageFilter) -> bool:
    """Return whether a filter searches all letters that could match. Of bodies, only the newest 20,000 are searched."""
    if not criteria.reads_bodies:
        return True
    asked = plain_parameters(criteria) | {"text": None, "limit": SEARCHED_LETTERS + 1}
    without = where_clause(criteria.without_bodies())
    with search_timeout():
        return rows.value(int, COUNT.format(where=without), asked) <= SEARCHED_LETTERS


def require_exhaustive(criteria: MessageFilter) -> None:
    """Raise InvalidFilter if the filter may match letters that are not searched (see `is_exhaustive`)."""
    if not is_exhaustive(criteria):
        raise InvalidFilter(
            f"A text is searched for only in the newest {SEARCHED_LETTERS:,} messages, and there are more. Narrow the "
            "filter by DLQ, reason or dates, so that all matching messages are searched."
        )


def parameters_within_timeout(criteria: MessageFilter) -> dict[str, Any]:
    """Return the parameters of `where_clause`; if searching bodies takes over 5 s, raise InvalidFilter."""
    return sql_parameters(criteria, seconds=_SEARCH_TIMEOUT_MS / 1_000)


@contextmanager
def search_timeout(milliseconds: int | None = None) -> Iterator[None]:
    """Limit the time of each query in the block, and let PostgreSQL plan each query for its values.

    A query that takes longer raises InvalidFilter. `milliseconds`: the limit; None: 5 seconds. A block inside another
    one has the limit of the outer block, if that is shorter.
    """
    outer = _present_timeout.get()
    milliseconds = min(milliseconds or _SEARCH_TIMEOUT_MS, outer or _SEARCH_TIMEOUT_MS)
    present = _present_timeout.set(milliseconds)
    try:
        with transaction.atomic():
            rows.execute(_LIMIT, {"most": str(milliseconds)})
            yield
            if outer:
                rows.execute(_LIMIT, {"most": str(outer)})
            else:
                for reset in _NO_LIMIT:
                    rows.execute(reset, {})
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise
        raise InvalidFilter(
            f"The search took longer than {milliseconds / 1_000:g} seconds and was stopped. Narrow the filter by DLQ, "
            "group or dates."
        ) from error
    finally:
        _present_timeout.reset(present)


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
