"""Read the value of a message's field (in the body, or an attribute), by which messages are grouped or filtered."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Final

from reprocessing.domain.errors import InvalidFilter, InvalidSelector
from reprocessing.domain.message import json_view
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.routing import jmespath_query

_SOURCES: Final = {SelectorSource.BODY, SelectorSource.ATTRIBUTE}


class NoValue(Enum):
    """Why a message has no single value in a field, in the words that people see."""

    MISSING = "no value"
    MANY = "an object or a list"
    UNREADABLE = "cannot be read"


#: The value as text. Equal numbers have equal texts. The number 7 and the string "7" have the same text.
FieldValue = str | NoValue


def read_field(text: str) -> Selector:
    """Return the field that a text describes, such as body:customer.id or attribute:Tenant.

    Raises:
        InvalidFilter: the text describes no field. The exception's text says what to write.
    """
    try:
        found = Selector.parse(text)
    except InvalidSelector as error:
        raise InvalidFilter(str(error)) from error
    if found.source not in _SOURCES:
        raise InvalidFilter(
            f"{found} is not a field. Write body:JMESPATH, such as body:customer.id, or attribute:NAME."
        )
    return found


def value_of(field: Selector, letter: LetterFacts) -> FieldValue:
    """Return the value of a field of a message, or why it has none. Never raises."""
    if field.source is SelectorSource.ATTRIBUTE:
        attribute = letter.attributes.get(field.name)
        if attribute is None:
            return NoValue.MISSING
        return attribute.value if isinstance(attribute.value, str) else NoValue.UNREADABLE
    document = letter.document
    return (
        NoValue.UNREADABLE if isinstance(document, Unreadable) else _text(jmespath_query.search(field.name, document))
    )


def _text(found: object) -> FieldValue:
    match found:
        case None:
            return NoValue.MISSING
        case bool():
            return "true" if found else "false"
        case str():
            return found
        case int() | Decimal():
            return json_view.number_text(found)
        case list() | dict():
            return NoValue.MANY
        case _:  # the expression failed, or a function of it returned a float, which may be inexact
            return NoValue.UNREADABLE
