"""Turn conditions on search fields and ordering keys into SQL, as parts of a message filter's WHERE clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, LiteralString

from reprocessing.domain.errors import InvalidFilter, PayloadUnreadable
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads.sealing import DataKey
from reprocessing.domain.search.field_condition import FieldCondition
from reprocessing.domain.search.search_fields import normal_value
from reprocessing.store.payloads import payload_keys
from reprocessing.store.search import search_settings
from reprocessing.store.search.search_entries import Hasher
from reprocessing.store.search.search_settings import SearchSettings

# A person who may not reveal masked values finds no letter by a masked value, because a result would confirm a guessed
# value. While a DLQ's letters are indexed again, it is not known which of its values are masked.
_SEEN: Final[LiteralString] = """
(%(reveals)b::bool OR (NOT s.masked AND s.dlq_id = ANY(%(unmasked_dlqs)b::bigint[])))
"""

#: SQL: ids of letters with a value of a search field; and with a value that begins with a prefix.
_EQUAL: Final[LiteralString] = f"""
SELECT s.letter_id FROM redrive_search_entry s
 WHERE s.name = %(name_{{n}})b::text AND s.value = ANY(%(values_{{n}})b::text[]) AND {_SEEN}
"""  # noqa: S608  # the inserted texts are constants

#: The last character in sort order: every value with a prefix sorts before the prefix followed by this character.
_LAST: Final = "\U0010ffff"

_PREFIX: Final[LiteralString] = f"""
SELECT s.letter_id FROM redrive_search_entry s
 WHERE s.name = %(name_{{n}})b::text AND s.value >= %(from_{{n}})b::text AND s.value < %(to_{{n}})b::text AND {_SEEN}
"""  # noqa: S608  # as above

#: Parts of SQL parameters' names, one for each condition of a filter (`message_filter.MAX_CONDITIONS`).
_NUMBERS: Final[tuple[LiteralString, ...]] = ("0", "1", "2")

#: SQL: ids of letters in which any search field has the value `named`, for `filter_conditions`.
NAMED: Final[LiteralString] = f"""
SELECT s.letter_id FROM redrive_search_entry s
 WHERE s.name = ANY(%(any_names)b::text[]) AND s.value = ANY(%(any_values)b::text[]) AND {_SEEN}
"""  # noqa: S608  # as above

#: SQL: ids of letters with the ordering key `key`: letters on its lanes, and captured letters, which have no lane yet.
#: OFFSET 0 makes the planner use an index for each source queue; else it may read all lanes or captured letters.
OF_KEY: Final[LiteralString] = """
SELECT x.id FROM redrive_letter x WHERE x.lane_id IN (
    SELECT n.id FROM redrive_source o CROSS JOIN LATERAL (
                SELECT id FROM redrive_lane WHERE dlq_id = o.dlq_id AND source_id = o.id
                   AND key_hash = sha256(convert_to({key}, 'UTF8')) OFFSET 0) n LIMIT 100)
UNION ALL
SELECT x.id FROM redrive_source o CROSS JOIN LATERAL (
            SELECT id FROM redrive_letter WHERE source_id = o.id AND state = 'captured' AND planned AND NOT single
               AND key_hash = sha256(convert_to({key}, 'UTF8')) OFFSET 0) x
"""


def ids_by_condition(criteria: MessageFilter) -> list[LiteralString]:
    """Return, for each condition of the filter on a search field, SQL that selects the ids of its letters."""
    return [
        (_PREFIX if condition.is_prefix else _EQUAL).format(n=number)
        for number, condition in zip(_NUMBERS, criteria.conditions, strict=False)
    ]


def parameters(criteria: MessageFilter) -> dict[str, Any]:
    """Return the SQL parameters of `ids_by_condition` and of `NAMED`. Values of encrypted DLQs are keyed hashes.

    Raises:
        InvalidFilter: values are encrypted, and their keys are not available.
    """
    found: dict[str, Any] = {"reveals": criteria.reveals, "unmasked_dlqs": [], "any_names": [], "any_values": []}
    if not criteria.fields and criteria.named is None:
        return found
    every = [one for one in search_settings.all_settings() if criteria.dlqs is None or one.id in criteria.dlqs]
    keys = _keys(every)
    found["unmasked_dlqs"] = search_settings.unmasked_dlqs(every)
    for number, condition in zip(_NUMBERS, criteria.conditions, strict=False):
        found |= {f"{name}_{number}": value for name, value in _of_condition(condition, every, keys).items()}
    if criteria.named is not None:
        value, names = normal_value(criteria.named), sorted({field.name for one in every for field in one.fields})
        hashes = [text for name in names for text in _hashes(name, value, every, keys)]
        found |= {"any_names": names, "any_values": [value, *hashes]}
    return found


def _of_condition(
    asked: FieldCondition, every: Sequence[SearchSettings], keys: Mapping[int, DataKey]
) -> dict[str, Any]:
    if asked.is_prefix:
        return {"name": asked.name, "from": asked.value, "to": asked.value + _LAST}
    return {"name": asked.name, "values": [asked.value, *_hashes(asked.name, asked.value, every, keys)]}


def _hashes(name: str, value: str, every: Iterable[SearchSettings], keys: Mapping[int, DataKey]) -> Iterator[str]:
    for settings in every:
        if settings.id in keys and any(field.name == name for field in settings.fields):
            yield Hasher(keys[settings.id]).stored(name, value)


def _keys(every: Sequence[SearchSettings]) -> dict[int, DataKey]:
    try:
        return payload_keys.search_keys([settings.id for settings in every])
    except PayloadUnreadable as error:
        raise InvalidFilter(f"Values of encrypted DLQs cannot be searched for now: {error}") from error
