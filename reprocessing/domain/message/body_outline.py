"""Outline a message body without its values: the keys and types of JSON, the root of XML, or only the format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from reprocessing.domain.message import xml_root
from reprocessing.domain.message.json_view import JsonValue, Unreadable

#: Limits of an outline: max nesting depth, max keys of one object, max paths in all.
DEPTH, KEYS, PATHS = 6, 64, 256
_NAMED: Final = 6  # max keys in a title
_LONGEST_KEY: Final = 40
_XML_HEAD: Final = 4_096  # bytes of a body that are searched for the root element
_KEY: Final = re.compile(r"[A-Za-z_$@][A-Za-z0-9_$.:-]*")
_DIGITS: Final = re.compile(r"[0-9]{3}|[0-9a-fA-F]{12}")
_FORM: Final = re.compile(rb"(?:[A-Za-z0-9_.%+\[\]-]{1,64}=[A-Za-z0-9_.%+~*!()'@:,/-]*+(?:&|\Z)){1,64}")


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a body, which contains no values of the body.

    `title`: words for people. `parts`: the structure as sorted texts, equal for bodies of the same structure. `keys`:
    the sorted top-level keys of a JSON object, or names of a form's fields; empty for other bodies.
    """

    title: str
    parts: tuple[str, ...]
    keys: tuple[str, ...] = ()


def of_json(document: JsonValue) -> Outline:
    """Return the outline of a JSON value: the paths and types in it. Of a list, only the first element counts."""
    names: list[str] = []
    match document:
        case dict():
            names = sorted({_key(name) for name in document})[:KEYS]
            shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
            title = f"JSON with {shown}" if names else "an empty JSON object"
        case list():
            title = f"a JSON list of {_type(document[0])}s" if document else "an empty JSON list"
        case _:
            title = f"JSON: a {_type(document)}"
    return Outline(title, ("json", *_paths(document)), tuple(names))


def texts_of_json(document: JsonValue | Unreadable) -> Iterator[str]:
    """Yield the texts in a JSON value, nested ones included; only its first 256 values (`PATHS`) are searched."""
    left = [] if isinstance(document, Unreadable) else [document]
    for _ in range(PATHS):
        match left.pop() if left else None:
            case dict() as members:
                left.extend(list(members.values())[:PATHS])
            case list() as items:
                left.extend(items[:PATHS])
            case str() as text:
                yield text
            case _:
                pass


def of_bytes(body: bytes, document: JsonValue | Unreadable) -> Outline:
    """Return the outline of a message body. `document`: the body as JSON, as `json_view.read` returned it."""
    if not isinstance(document, Unreadable):
        return of_json(document)
    if not body.strip():
        return Outline("an empty body", ("empty",))
    if name := xml_root.root(body[:_XML_HEAD].decode(errors="replace")):
        return Outline(f"XML: {_key(name)}", ("xml", _key(name)))
    if names := _form(body[:_XML_HEAD]):
        return Outline(f"a form with {', '.join(names[:_NAMED])}", ("form", *names), tuple(names))
    try:
        body.decode()
    except UnicodeDecodeError:
        return Outline("bytes that are no text", ("binary",))
    return Outline("plain text body", ("json-like",) if document.is_json else ("text",))


def _paths(document: JsonValue) -> list[str]:
    found: set[str] = set()
    left: list[tuple[str, JsonValue, int]] = [("", document, 0)]
    while left and len(found) < PATHS:
        path, value, depth = left.pop()
        found.add(f"{path}:{_type(value)}")
        if depth >= DEPTH:
            continue
        match value:
            case dict():
                known = _by_key(value)
                names = sorted(known, reverse=True)[-KEYS:]
                left.extend((f"{path}.{name}", known[name], depth + 1) for name in names)
            case list() if value:
                left.append((f"{path}[]", value[0], depth + 1))
            case _:
                pass
    return sorted(found)


def _by_key(found: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the values of an object by the names for the outline (`_key`). Of equal names, the first one counts."""
    known: dict[str, JsonValue] = {}
    for name in sorted(found):
        known.setdefault(_key(name), found[name])
    return known


def is_name(name: str) -> bool:
    """Return whether a member's name looks like the name of a field, and not like a value, such as an id."""
    looks_so = len(name) <= _LONGEST_KEY and (_KEY.fullmatch(name) or name.isidentifier())
    return bool(looks_so) and not _DIGITS.search(name)


def _key(name: str) -> str:
    """Return the name that the outline shows for an object's member: "#" if the name may be a value, such as an id."""
    return name if is_name(name) else "#"


def _type(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "yes-or-no"
        case int() | Decimal():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "object"


def _form(head: bytes) -> list[str]:
    """Return the names of a form's fields; empty if the text is no form. Base64 that ends with "=" is no form."""
    if not _FORM.fullmatch(head):
        return []
    fields = [part.partition(b"=") for part in head.rstrip(b"&").split(b"&")]
    return sorted({_key(name.decode("ascii")) for name, _, _ in fields}) if any(value for _, _, value in fields) else []
