"""Read a DLQ's search fields (fields by which people search for messages), and find their values in a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource, select_values
from reprocessing.domain.payloads import masking
from reprocessing.domain.payloads.mask_rules import MaskRules

#: Max search fields of a DLQ; max values of one field in a message, if the field is a list.
MAX_FIELDS, MAX_VALUES = 10, 20
#: Values are cut to this number of characters, in the index and in searches.
VALUE_LENGTH: Final = 200
#: The first character of a stored value that is a keyed hash (encrypted DLQs); no readable value begins with it.
HASHED: Final = "\x1a"
#: Names that have another meaning in searches, so that no search field can have them.
RESERVED: Final = ("id", "key", "dlq", "state", "reason", "group", "text")

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_EXAMPLE: Final = "order_id=body:order.id"
#: Parts of a message that cannot be search fields. The message id can be searched anyway.
_USELESS: Final = (SelectorSource.NONE, SelectorSource.CONTENT_HASH, SelectorSource.MESSAGE_ID)


@dataclass(frozen=True, slots=True)
class SearchField:
    """A search field: its name in searches, and where its value is in a message."""

    name: str
    where: Selector

    def __str__(self) -> str:
        return f"{self.name}={self.where}"

    @classmethod
    def parse(cls, text: str) -> SearchField:
        """Return the field that a text such as `order_id=body:order.id` declares. Raise InvalidSelector."""
        name, equals, where = text.strip().partition("=")
        if not equals or not is_name(name):
            raise InvalidSelector(
                f'"{text}" is not a search field. Write NAME=WHERE, such as {_EXAMPLE}; the name has lower-case '
                "letters, digits and _, 40 at most."
            )
        if name in RESERVED:
            raise InvalidSelector(f"{name} has another meaning in searches. Choose another name.")
        selector = Selector.parse(where)
        if selector.source in _USELESS:
            raise InvalidSelector(
                f"{where} cannot be a search field. Write attribute:NAME, body:JMESPATH or system:NAME."
            )
        return cls(name, selector)


@dataclass(frozen=True, slots=True)
class SearchValue:
    """A value of a search field in one message. `masked`: the DLQ's mask rules hide the value."""

    name: str
    value: str
    masked: bool = False


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a search field."""
    return _NAME.fullmatch(text) is not None


def list_problem(declared: Sequence[str]) -> str:
    """Return why a DLQ cannot have these search fields, each written as NAME=WHERE; empty: it can have them."""
    names: list[str] = []
    for text in declared:
        try:
            names.append(SearchField.parse(text).name)
        except InvalidSelector as error:
            return str(error)
    if len(names) > MAX_FIELDS:
        return f"A DLQ has at most {MAX_FIELDS} search fields; these are {len(names)}. Leave out some."
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"The search field {twice[0]} is declared twice. Give each field a name of its own." if twice else ""


@lru_cache(maxsize=1_024)
def search_fields(declared: tuple[str, ...]) -> tuple[SearchField, ...]:
    """Return the search fields that a DLQ's setting declares, each as NAME=WHERE. The texts must be valid."""
    return tuple(SearchField.parse(text) for text in declared)


def normal_value(text: str) -> str:
    """Return a value as it is indexed and searched: without spaces around it, and cut to 200 characters."""
    return text.strip()[:VALUE_LENGTH]


def values_of(fields: Sequence[SearchField], letter: LetterFacts, rules: MaskRules) -> list[SearchValue]:
    """Return the values of these fields in a message, each once. A field may have no value, or up to 20 values.

    A value counts as masked if it is no longer found after the message was masked by `rules`.
    """
    found = list(dict.fromkeys(_pairs(fields, letter)))
    if not found or not rules:
        return [SearchValue(*pair) for pair in found]
    hidden = masking.mask(letter.body, letter.attributes, rules)
    if not hidden.is_masked:
        return [SearchValue(*pair) for pair in found]
    shown = set(_pairs(fields, LetterFacts(letter.message_id, hidden.body, hidden.attributes, letter.system)))
    return [SearchValue(*pair, masked=pair not in shown) for pair in found]


def _pairs(fields: Sequence[SearchField], letter: LetterFacts) -> Iterator[tuple[str, str]]:
    for field in fields:
        for text in select_values(field.where, letter, most=MAX_VALUES):
            value = normal_value(text)
            if value and not value.startswith(HASHED):
                yield field.name, value
