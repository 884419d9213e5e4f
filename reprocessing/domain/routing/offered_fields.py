"""Collect fields and values of sample messages, which the form of a rule offers for its conditions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message import body_outline
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.parking_lot import text_pattern
from reprocessing.domain.payloads.masking import MASK
from reprocessing.domain.routing.condition_fields import Field, FieldKind, NotText, problem_of_field
from reprocessing.domain.routing.conditions import Condition, Operator
from reprocessing.domain.routing.message_fields import MessageFields, text_of

#: Most fields, and most values of a field, that are offered; most characters of a value.
FIELDS, VALUES, VALUE_LENGTH = 40, 6, 100
#: Most fields of one message that are read, and the deepest level of its JSON.
_PATHS, _DEPTH = 400, 4
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Kinds of fields that have no name or expression.
_PARTS: Final = (FieldKind.SOURCE, FieldKind.TYPE, FieldKind.TENANT, FieldKind.TASK)
#: Kinds of fields whose values everybody may see if they look like the name of a type.
_PUBLIC: Final = (FieldKind.TYPE, FieldKind.TASK)


@dataclass(frozen=True, slots=True)
class OfferedValue:
    """A value that sample messages have in a field.

    `text`: the value as conditions compare it. `types`: its JSON types. `count`: how many messages have it.
    `condition`: the condition that matches this value.
    """

    text: str
    types: str
    count: int
    condition: str


@dataclass(frozen=True, slots=True)
class OfferedField:
    """A field that sample messages have. `count`: how many messages have it.

    `values`: its most frequent values; empty: they are not shown. `more`: how many further values the messages have.
    """

    name: str
    count: int
    values: tuple[OfferedValue, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class OfferedFields:
    """The fields of sample messages, the most useful first. `more`: how many fields are left out."""

    fields: tuple[OfferedField, ...] = ()
    more: int = 0


@dataclass(slots=True)
class _Found:
    """How many messages have a field, and its values with their JSON types."""

    count: int = 0
    values: Counter[str] = field(default_factory=Counter)
    types: dict[str, set[str]] = field(default_factory=dict)


def offered_fields(messages: Iterable[MessageFields], *, values: bool) -> OfferedFields:
    """Return the fields that these messages have, with their most frequent values.

    If `values` is false, return only what people may see who may not see payloads. This is the source queue, names that
    look like names of fields, and the names of message types and tasks.
    """
    found: dict[str, _Found] = {}
    for message in messages:
        for name, text, kind in _read(message, values=values):
            counted = found.setdefault(name, _Found())
            counted.count += 1
            if text is not None:
                counted.values[text] += 1
                counted.types.setdefault(text, set()).add(kind)
    every = sorted(found.items(), key=lambda item: (-item[1].count, len(item[1].values) == item[1].count > 1))
    offered = tuple(_offered(name, counted) for name, counted in every[:FIELDS])
    return OfferedFields(offered, max(len(every) - FIELDS, 0))


def _offered(name: str, found: _Found) -> OfferedField:
    shown: list[OfferedValue] = []
    for text, count in found.values.most_common():
        if len(shown) < VALUES and (condition := _condition(name, text)):
            shown.append(OfferedValue(text, " and ".join(sorted(found.types[text])), count, condition))
    return OfferedField(name, found.count, tuple(shown), len(found.values) - len(shown))


def _condition(name: str, text: str) -> str:
    """Return the condition that the field equals this text; empty: no condition can contain the text."""
    if len(text) > VALUE_LENGTH or not text:
        return ""
    try:
        return str(Condition.parse(f"{name} {Operator.EQUALS} {json.dumps(text)}"))
    except InvalidRule:
        return ""


def _read(message: MessageFields, *, values: bool) -> Iterator[tuple[str, str | None, str]]:
    """Yield each field of a message: its name, its value as text (None: not shown), and the type of the value."""
    for kind in _PARTS:
        found = message.read(Field(kind))
        if isinstance(found, str):
            open_to_all = kind is FieldKind.SOURCE or (kind in _PUBLIC and bool(text_pattern.type_name(found)))
            yield kind.value, found if values or open_to_all else None, "text"
    for name in sorted(message.letter.attributes)[:_PATHS]:
        asked = Field(FieldKind.ATTRIBUTE, name)
        found = message.read(asked)
        if isinstance(found, str | NotText) and (values or text_pattern.type_name(name)):
            yield asked.text, _shown(found) if values else None, "text"
    for kind, path, value in _in_json(message, values=values):
        asked = Field(kind, path)
        if problem_of_field(asked, named=True) is None:
            found = text_of(value)
            yield asked.text, _shown(found) if values else None, type_name(value)


def _shown(found: object) -> str | None:
    return found if isinstance(found, str) and MASK not in found else None


def _in_json(message: MessageFields, *, values: bool) -> Iterator[tuple[FieldKind, str, JsonValue]]:
    """Yield kind, JMESPath and value of each field in the body, or in the arguments of a Celery task."""
    arguments = message.task_arguments
    kind, root = (FieldKind.BODY, message.document) if arguments is None else (FieldKind.TASK, arguments)
    left: list[tuple[str, JsonValue, int]] = [] if isinstance(root, Unreadable) else [("", root, 0)]
    for _ in range(_PATHS):
        if not left:
            return
        path, value, depth = left.pop(0)
        if isinstance(value, dict):
            names = [name for name in list(value)[:_PATHS] if values or body_outline.is_name(name)]
            if depth < _DEPTH:
                left += [(f"{path}.{_identifier(name)}".lstrip("."), value[name], depth + 1) for name in names]
        elif path and value is not None:
            yield kind, path, value


def _identifier(name: str) -> str:
    """Return a member's name as JMESPath writes it."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def type_name(value: JsonValue) -> str:
    """Return the type of a JSON value, such as number."""
    match value:
        case bool():
            return "boolean"
        case int() | Decimal():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "object"
        case None:
            return "null"
