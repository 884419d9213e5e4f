"""Erase a value, such as a customer's number: the messages that have it, and the value in all stored texts (history).

If the process is killed, a second call continues.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db.models import Count

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.search.search_fields import search_fields
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store import rows
from reprocessing.store.approvals import guard
from reprocessing.store.payloads import content, erasure, removal
from reprocessing.store.payloads.installation_texts import WholeValues
from reprocessing.store.search import filter_conditions

#: Most letters in one transaction.
BATCH: Final = 200
#: Fewest characters of a value that is replaced inside of texts: a shorter value is often a part of unrelated texts.
SHORTEST: Final = 4
#: Members of stored JSON, and conditions of filters, that may have an ordering key.
_OF_KEYS: Final = ("key", "ordering_key", "named", "text")

_IDS = "SELECT l.id FROM redrive_letter l WHERE l.id > %(above)b::bigint AND {where} ORDER BY l.id LIMIT %(limit)b"


@dataclass(frozen=True, slots=True)
class Found:
    """What an erasure would erase.

    `letters`: number of messages. `busy`: how many of these are in progress, and would not be erased. `history`: for
    each table, how many rows have the value in a stored text.
    """

    letters: int
    busy: int
    history: dict[str, int]


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasure: its id (`erasure`), and how much was erased (`counts`; empty: nothing had the value).

    `busy`: how many messages in progress are left; 0: the erasure is done.
    """

    erasure: int
    counts: dict[str, int]
    busy: int


def value_of(criteria: MessageFilter) -> str:
    """Return the value to erase: the only key or text that a filter asks for.

    Raises:
        InvalidFilter: the filter has no such value, or several, or the value has fewer than 4 characters and is not an
            ordering key or the value of a named search field.
    """
    if any(condition.is_prefix for condition in criteria.conditions):
        raise InvalidFilter("An erasure is about one value, not about all that begin with it. Write field=NAME:VALUE.")
    values = {value for value in (criteria.key, criteria.named, criteria.text) if value is not None}
    values |= {condition.value for condition in criteria.conditions}
    if len(values) != 1:
        raise InvalidFilter(
            "An erasure is about one value. Write --where key=VALUE, text=VALUE, field=NAME:VALUE, or q=VALUE."
        )
    value = values.pop()
    if is_short(value) and (criteria.text is not None or criteria.named is not None):
        raise InvalidFilter(
            f"The value has fewer than {SHORTEST} characters, so unrelated messages may have it, too. Say where the "
            "value is: --where key=VALUE (ordering key), or --where field=NAME:VALUE (search field)."
        )
    return value


def is_short(value: str) -> bool:
    """Return whether a value has fewer than 4 characters. It is then not replaced in texts, such as reasons and notes.

    Other words may contain a short value by chance.
    """
    return len(value) < SHORTEST


def _places(criteria: MessageFilter) -> WholeValues | None:
    """Return where a short value is replaced; None: the value is not short, and is replaced in all texts.

    A short value may also occur in other data by chance. So it is replaced only where it is certainly meant. An
    ordering key is replaced in keys and in texts that people searched for. The value of a search field is replaced in
    filter conditions on this field.
    """
    if not is_short(value_of(criteria)):
        return None
    dlqs = DeadLetterQueue.objects.values_list("ordering_key", "search_fields")
    names = {condition.name for condition in criteria.conditions}
    selectors = {
        str(field.where) for _, fields in dlqs for field in search_fields(tuple(fields)) if field.name in names
    }
    if criteria.key is not None:
        selectors |= {ordering for ordering, _ in dlqs if ordering}
    members = _OF_KEYS if criteria.key is not None else ()
    return WholeValues(members, tuple(map(str, criteria.conditions)), tuple(sorted(selectors)))


def count_erasable(criteria: MessageFilter) -> Found:
    """Return what the erasure of a filter's value would erase. Nothing is changed."""
    value = value_of(criteria)
    letters, busy = 0, 0
    for ids in _letters(criteria):
        letters += len(ids)
        busy += len(removal.letters_in_progress(ids))
    return Found(letters, busy, erasure.count_history(value, whole_values_only=_places(criteria)))


def erase(criteria: MessageFilter, *, by: str, reason: str, on_progress: Callable[[int], None]) -> Erased:
    """Erase the messages that a filter matches, then replace the filter's value in all stored texts (history).

    A short value is replaced only where the whole key or field has this value (`_places`). `on_progress` is called
    after each batch, with the number of messages erased so far. Messages in progress are left. The erasure then stays
    open, and a second call with the same filter continues it.

    Raises:
        InvalidFilter: the filter is not about one value, or is a search for a short value.
        ApprovalRefused: there are more messages than one person may discard alone, and nobody can approve an erasure.
    """
    value = value_of(criteria)
    rows.in_transaction(partial(guard.refuse_above, _by_dlq(criteria), "Erasing these messages", by=by))
    (digest,) = content.keyed([hashlib.sha256(f"{criteria.stored()}".encode()).digest()])
    opened = erasure.open_erasure(digest, by=by, reason=reason)
    busy, done = 0, 0
    for ids in _letters(criteria):
        batch = erasure.erase_letters(opened, ids)
        busy += len(batch.busy)
        done += len(batch.erased)
        on_progress(done)
    erasure.erase_history(opened, value, whole_values_only=_places(criteria))
    if not busy and not opened.counts:
        number = opened.pk
        opened.delete()  # nothing was erased, so nothing is certified
        return Erased(number, {}, 0)
    if not busy:
        erasure.finish(opened, whole_values_only=is_short(value))
    return Erased(opened.pk, opened.counts, busy)


def _by_dlq(criteria: MessageFilter) -> dict[int, int | None]:
    """Return how many messages of each DLQ would be discarded or lose their content, by the DLQ's id."""
    counts: Counter[int] = Counter()
    for ids in _letters(criteria):
        counts.update(dict(Letter.objects.filter(pk__in=ids).values_list("dlq_id").annotate(n=Count("pk"))))
    return dict(counts)


def _letters(criteria: MessageFilter) -> Iterator[list[int]]:
    statement = _IDS.format(where=filter_conditions.where_clause(criteria, whole=True))
    values = filter_conditions.sql_parameters(criteria) | {"above": 0, "limit": BATCH}
    while ids := rows.column(int, statement, values):
        yield ids
        values["above"] = ids[-1]
