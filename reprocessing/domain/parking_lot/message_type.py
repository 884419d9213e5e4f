"""Find a message's type, such as order.paid, where producers usually write it.

People who may not see payloads see the type. So a value that may be an id, a date or a person's text is no type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message import json_view
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.message.json_view import JsonValue
from reprocessing.domain.parking_lot.text_pattern import ID_IN_IT

#: Most characters of a type.
LONGEST: Final = 80
#: Names of attributes and fields with a type, the most specific first; in lower case, without - _ . and :.
NAMES: Final = (
    "cetype", "cloudeventstype", "detailtype", "eventtype", "eventname", "messagetype", "event", "type", "typename",
    "task",
)  # fmt: skip
#: Names such as X-GitHub-Event, X-Shopify-Topic and X-Event-Key. They come after `cetype`.
_HEADER: Final = re.compile(r"x[a-z0-9]*(?:event|eventtype|eventkey|topic)")
_PLAIN: Final = str.maketrans("", "", "-_.: ")
_TYPE: Final = re.compile(rf"[A-Za-z][A-Za-z0-9_.:/+-]*(?: [A-Za-z0-9_.:/+-]+){{0,4}}(?<=.)(?!.{{{LONGEST}}})")
_DATE: Final = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}|[0-9]{1,2}:[0-9]{2}")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_TURN: Final = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{2})(?=[a-z])")
_PART: Final = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|[0-9]+")
_HEX: Final = re.compile(r"(?=[a-f]*+[0-9])[0-9a-f]{8,}")
_DIGIT_INSIDE: Final = re.compile(r"[0-9][A-Za-z]")
_LONGEST_PART: Final = 20  # max characters of one word; a longer word is a token
_LONG: Final = 16  # a word this long is an id if letters and digits, or upper and lower case, alternate in it
_MOST_DIGITS: Final = 4  # max digits of a type


@dataclass(frozen=True, slots=True)
class TypeField:
    """The type of a message, and the attribute or field of the body that names it.

    `path`: the attribute's name; or, if `in_body`, the keys that lead to the field. The path is empty if the field is
    in JSON inside a text of the body, where no selector can read it.
    """

    value: str
    in_body: bool
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """Fields that may contain a message type.

    The keys `before`, a field's name and the keys `after` form the path to its value; `before` None: no path exists.
    """

    fields: Mapping[str, object]
    in_body: bool
    before: tuple[str, ...] | None = ()
    after: tuple[str, ...] = ()


def type_value(text: str) -> str:
    """Return `text` if it can be a message type; "" if it is too long, a date, an id, or a person's text."""
    if not (0 < len(text) <= LONGEST and _TYPE.fullmatch(text)) or ID_IN_IT.search(text) or _DATE.search(text):
        return ""
    if sum(map(str.isdigit, text)) > _MOST_DIGITS or any(map(_is_random, _WORD.findall(text))):
        return ""
    return text


def message_type(letter: LetterFacts) -> str:
    """Return the type that an attribute, a webhook's header or a field of the body names, or "". Never raises."""
    found = type_field(letter)
    return found.value if found else ""


def type_field(letter: LetterFacts) -> TypeField | None:
    """Return the same type as `message_type`, with the field that names it; None: there is no type. Never raises."""
    attributes = {name: each.value for name, each in letter.attributes.items() if isinstance(each.value, str)}
    found = (_Part(attributes, in_body=False), *_parts(letter.document))
    return next((kind for part in found if (kind := _named(part))), None)


def _parts(document: object) -> Iterator[_Part]:
    """Yield the mappings that may contain a type: headers and fields of a body, or of an SNS notification's message."""
    match document:
        case {"Type": "Notification", "TopicArn": str(), "Message": str(message), **rest}:
            if isinstance(given := rest.get("MessageAttributes"), dict):
                values = {name: each.get("Value") for name, each in given.items() if isinstance(each, dict)}
                yield _Part(values, in_body=True, before=("MessageAttributes",), after=("Value",))
            inner = json_view.read(message.encode())
            yield from _fields(inner, path=None) if isinstance(inner, dict) else ()
        case dict() as fields:
            yield from _fields(fields, path=())
        case _:
            pass


def _fields(document: dict[str, JsonValue], *, path: tuple[str, ...] | None) -> Iterator[_Part]:
    """Yield the headers of an HTTP request that is stored in the body, then the body's own fields.

    `path`: the keys that lead to the document; None: no path leads to it.
    """
    if isinstance(headers := document.get("headers"), dict):
        yield _Part(headers, in_body=True, before=None if path is None else (*path, "headers"))
    yield _Part(document, in_body=True, before=path)


def _named(part: _Part) -> TypeField | None:
    plain: dict[str, str] = {}
    headers: list[str] = []
    for name in sorted(part.fields):
        key = name.lower().translate(_PLAIN)
        if _HEADER.fullmatch(key):
            headers.append(name)
        plain.setdefault(key, name)
    wanted = [plain.get(NAMES[0]), *headers, *(plain.get(key) for key in NAMES[1:])]
    for found in filter(None, wanted):
        kind, inner = _of(part.fields[found])
        if kind:
            path = () if part.before is None else (*part.before, found, *part.after, *inner)
            return TypeField(kind, part.in_body, path)
    return None


def _of(value: object) -> tuple[str, tuple[str, ...]]:
    """Return the message type in a field's value, and the keys inside the value that lead to the type.

    The type is the value itself, or the member `type` or `name` of an object.
    """
    match value:
        case str():
            return type_value(value), ()
        case {"type": str(inner)}:
            return type_value(inner), ("type",)
        case {"name": str(inner)}:
            return type_value(inner), ("name",)
        case _:
            return "", ()


def _is_random(word: str) -> bool:
    """Return whether a word looks like an id or a token: long, or with many changes of letters, digits and cases."""
    if any(len(part) > _LONGEST_PART for part in _PART.findall(word)):
        return True
    if _HEX.fullmatch(word):
        return True
    is_long, turns = len(word) >= _LONG, len(_TURN.findall(word))
    if is_long and (word.islower() or word.isupper()) and _DIGIT_INSIDE.search(word):
        return True
    many = turns > 2 and turns * 4 >= len(word)  # noqa: PLR2004  v2 and S3Created are few
    return many and (is_long or any(map(str.isdigit, word)))
