"""Read JSON for a tree view. Numbers stay as written, repeated names are kept, and long lists are cut."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from reprocessing.domain.message.json_view import DEPTH

#: How many members of an object, and how many items of a list, are shown. The others are only counted.
MEMBERS: Final = 100
ITEMS: Final = 25
_BLANK: Final = re.compile(r"[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class Label:
    """The place of a value in its object or list: its name, or its index. Both None: the document itself.

    `is_repeated`: whether the object has an earlier member with this name. Most parsers read only the last member.
    """

    name: str | None = field(default=None, repr=False)
    index: int | None = None
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that contains no other value. `kind`: text, number, word (true, false, null) or empty ({} or []).

    `text`: the characters of a text; any other value as it is written in the document, so that no digit is lost.
    """

    label: Label
    kind: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """The start of an object or a list. Its values follow, then `Closed`."""

    label: Label
    is_list: bool


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of an object or a list that has `count` values, of which the last `unread` were not read."""

    count: int
    unread: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The rest of the document was not read: it is nested more than 64 deep, or it is no JSON."""


Step = Leaf | Opened | Closed | Stopped


def walk(text: str) -> Iterator[Step]:
    """Yield the values of a JSON document in their order, as far as the caller asks. Never raises for any text.

    Each step reads only what it yields. If the caller stops early, the rest is not read.
    """
    try:
        yield from _value(text, _past_blank(text, 0), Label(), 1)
    except (ValueError, RecursionError):
        yield Stopped()


def _value(text: str, at: int, label: Label, depth: int) -> Generator[Step, None, int]:
    """Yield the steps for the value at the position `at`, and return the position after the value."""
    opener = text[at : at + 1]
    if opener in {"{", "["}:
        first = _past_blank(text, at + 1)
        if text[first : first + 1] == _CLOSERS[opener]:
            yield Leaf(label, "empty", opener + _CLOSERS[opener])
            return first + 1
        if depth > DEPTH:
            raise ValueError("it is nested too deep")
        yield Opened(label, is_list=opener == "[")
        return (yield from _values(text, at, first, depth))
    value, end = _DECODER.raw_decode(text, at)
    is_text, is_word = opener == '"', opener in {"t", "f", "n"}
    yield Leaf(label, "text" if is_text else "word" if is_word else "number", value if is_text else text[at:end])
    return end


def _values(text: str, start: int, at: int, depth: int) -> Generator[Step, None, int]:
    """Yield the steps for the object or list that begins at `start`, and return the position after it.

    `at`: the position of its first value (in a list) or name (in an object).
    """
    is_list = text[start] == "["
    names, count = set[str](), 0
    while True:
        if count == (ITEMS if is_list else MEMBERS):
            every, end = _DECODER.raw_decode(text, start)
            yield Closed(len(every), len(every) - count)
            return end
        label = Label(index=count)
        if not is_list:
            name, at = _name(text, at)
            label = Label(name=name, is_repeated=name in names)
            names.add(name)
        at = _past_blank(text, (yield from _value(text, at, label, depth + 1)))
        count += 1
        mark, at = text[at : at + 1], at + 1
        if mark == _CLOSERS[text[start]]:
            yield Closed(count, 0)
            return at
        if mark != ",":
            raise ValueError("a comma is missing")
        at = _past_blank(text, at)


def _name(text: str, at: int) -> tuple[str, int]:
    """Return the name at this position, and the position of its value."""
    if text[at : at + 1] != '"':
        raise ValueError("a name is missing")
    name, end = _DECODER.raw_decode(text, at)
    colon = _past_blank(text, end)
    if text[colon : colon + 1] != ":":
        raise ValueError("a colon is missing")
    return name, _past_blank(text, colon + 1)


def _past_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _pairs(members: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return members


_CLOSERS: Final = {"{": "}", "[": "]"}
# Numbers remain texts: int() takes quadratic time, and refuses more than 4300 digits. Objects remain lists of members,
# so that repeated names are counted.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, object_pairs_hook=_pairs)
