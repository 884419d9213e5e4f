"""Turn the text of the search box into a message filter, limited to the DLQs that a person sees, and explain it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.http import HttpRequest

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.search.search_rights import may_search_bodies, with_masked_values
from reprocessing.admin.site import labels, visible_rows
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MAX_CONDITIONS, MessageFilter
from reprocessing.domain.search.field_condition import FieldCondition
from reprocessing.domain.search.search_text import SearchText, named_conditions, read_search
from reprocessing.models import DeadLetterQueue
from reprocessing.store.search import search_settings
from reprocessing.store.search.search_settings import SearchSettings

#: Max names of DLQs and of search fields in a sentence.
_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Search:
    """A search that a person entered.

    Attributes:
        criteria: the message filter that finds the messages.
        meanings: for each part of the search text, a text that says what it means.
        notes: sentences about messages that the search does not find, for example because they are not indexed yet.
        declared: the search settings of the DLQs that the search covers, and that have search fields.
    """

    criteria: MessageFilter
    meanings: tuple[str, ...]
    notes: tuple[str, ...]
    declared: tuple[SearchSettings, ...]


def search_of(request: HttpRequest, text: str, within: MessageFilter | None = None) -> Search:
    """Return what a text in the search box means. `within`: a filter that messages must match in addition.

    Raises:
        InvalidFilter: the text is not a valid search, searches bodies without permission, or names a DLQ or search
            field that this person does not see. The error says what to write.
    """
    asked = read_search(text)
    criteria = _with(within or MessageFilter(states=()), asked, dlq=_dlq(request, asked.dlq))
    declared = settings_seen(request, criteria)
    _check_fields(asked, declared)
    criteria = replace(with_masked_values(request, criteria), dlqs=visible_rows.of(request).ids)
    if criteria.text is not None and not may_search_bodies(request, criteria):
        raise InvalidFilter(
            "This searches bodies, which needs the permissions to see payloads and masked values. Search for a message "
            "id, an ordering key, or a search field."
        )
    return Search(
        criteria, tuple(_meanings(asked, declared)), tuple(_notes(criteria, asked, declared)), tuple(declared)
    )


def settings_seen(request: HttpRequest, criteria: MessageFilter) -> list[SearchSettings]:
    """Return the search settings of DLQs that the filter covers, that have search fields, and that the person sees."""
    seen = visible_rows.of(request)
    every = (
        settings for settings in search_settings.all_settings() if settings.declared and seen.includes(settings.id)
    )
    return [settings for settings in every if criteria.dlq in {None, settings.id}]


def names(found: Sequence[str], most: int = _NAMES) -> str:
    """Return the first names as text, at most `most`, and how many more there are: "a, b and 7 more"."""
    shown = ", ".join(found[:most])
    return f"{shown} and {len(found) - most:,} more" if len(found) > most else shown


def _with(criteria: MessageFilter, asked: SearchText, *, dlq: int | None) -> MessageFilter:
    given = {
        "named": asked.named, "key": asked.key, "text": asked.text, "group": asked.group, "dlq": dlq,
        "states": asked.states or None, "presumed": asked.presumed or None, "reasons": asked.reasons or None,
        "fields": named_conditions(asked.fields) or None,
    }  # fmt: skip
    if len(asked.fields) > MAX_CONDITIONS:
        raise InvalidFilter(f"A search has at most {MAX_CONDITIONS} conditions on search fields. Leave out some.")
    return replace(criteria, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # each has its own type


def _dlq(request: HttpRequest, name: str | None) -> int | None:
    if name is None:
        return None
    every = dict(visible_rows.rows(request, DeadLetterQueue.objects.order_by("name")).values_list("name", "pk"))
    if name in every:
        return every[name]
    near = difflib.get_close_matches(name, every, n=3, cutoff=0.5) or list(every)
    advice = f" Write dlq: and one of {names(near)}." if near else ""
    raise InvalidFilter(f"You see no DLQ {visible(name)[:60]!a}.{advice}")


def _check_fields(asked: SearchText, declared: Sequence[SearchSettings]) -> None:
    known = sorted({field.name for settings in declared for field in settings.fields})
    for condition in asked.fields:
        if condition.name in known:
            continue
        near = difflib.get_close_matches(condition.name, known, n=1, cutoff=0.6)
        cure = f"Search fields are: {names(near or known, 10)}." if known else "No DLQ declares a search field."
        raise InvalidFilter(
            f'No DLQ declares the search field "{condition.name}". {cure} To search bodies for the text, quote it: '
            f'"{condition.name}:{condition.value[:60]}". To declare the field, use Change… on the page of '
            "its DLQ, or run (NAME: the DLQ): "
            f"manage.py add_dlq NAME --search-field {condition.name}=body:{condition.name} --confirm"
        )


def _meanings(asked: SearchText, declared: Sequence[SearchSettings]) -> Iterator[str]:
    if asked.named is not None:
        fields = names(sorted({field.name for settings in declared for field in settings.fields}))
        yield f"message id, redrive id, ordering key{f' or search field ({fields})' if fields else ''} is {asked.named}"
    for condition in asked.fields:
        yield f"{condition.words} in {_in(declaring(condition, declared))}"
    if asked.key is not None:
        yield f"ordering key is {asked.key}"
    if asked.text is not None:
        yield f'body contains "{asked.text}"'
    yield from (f"DLQ is {name}" for name in [asked.dlq] if name is not None)
    if asked.states:
        yield f"state is {' or '.join(_state(state, asked) for state in asked.states)}"
    if asked.reasons:
        yield f"reason is {' or '.join(asked.reasons).replace('_', ' ')}"
    if asked.group is not None:
        yield f"failure group is {asked.group}"


def _state(state: str, asked: SearchText) -> str:
    return labels.state(state, presumed=True) if asked.presumed else labels.counted_state(state)


def _in(dlqs: Sequence[SearchSettings]) -> str:
    return f"{len(dlqs):,} DLQ{'' if len(dlqs) == 1 else 's'}: {names([settings.name for settings in dlqs])}"


def declaring(condition: FieldCondition, declared: Sequence[SearchSettings]) -> list[SearchSettings]:
    """Return those of the search settings in `declared` whose DLQ has the search field that the condition names."""
    return [settings for settings in declared if any(field.name == condition.name for field in settings.fields)]


def _notes(criteria: MessageFilter, asked: SearchText, declared: Sequence[SearchSettings]) -> Iterator[str]:
    if not asked.fields and asked.named is None:
        return
    if pending := [settings.name for settings in declared if not settings.is_current]:
        yield f"Search fields of {names(pending)} are being indexed: older messages may be missing."
    if not criteria.reveals and any(settings.rules for settings in declared):
        yield "Masked values are not searched: this needs the permission to reveal them."
    if any(condition.is_prefix for condition in asked.fields) and search_settings.encrypts():
        yield "Encrypted values are found only whole, without *."
