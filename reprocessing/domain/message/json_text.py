"""Edit a JSON text in place. Every byte outside the edit stays, including white space and the form of numbers.

An object or list is split into its members only if an edit needs the members. A `Budget` limits how many characters an
edit reads, and so how long the edit takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from reprocessing.domain.message import json_view

#: Max members of an object or list that is split.
MEMBERS: Final = 100_000
#: Characters that may be read in all to edit one text.
WORK: Final = 16 * 1024 * 1024
_BLANK: Final = re.compile(r"[ \t\n\r]*+")
# Numbers remain texts, because int() takes quadratic time.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=json_view.refuse_constant)


class TooMuchWork(ValueError):
    """An edit would read too many characters, or an object or list with too many members. The text says which."""


@dataclass(slots=True)
class Budget:
    """The number of characters that may still be read to edit one text."""

    left: int = WORK

    def pay(self, characters: int) -> None:
        """Subtract characters that the edit reads. Raise TooMuchWork if too few characters are left in the budget."""
        self.left -= characters
        if self.left < 0:
            raise TooMuchWork(f"the edit would read more than {WORK:,} characters")


@dataclass(slots=True)
class Member:
    """A value in an object or list, with the text around it.

    `before`: white space before the name (in a list: before the value). `label`: the name as it is written. `colon`:
    the colon with the white space around it. `after`: white space before the next comma or bracket. In a list, `label`
    and `colon` are empty.
    """

    value: JsonText
    before: str = ""
    label: str = ""
    colon: str = ""
    after: str = ""

    def pieces(self) -> Iterator[str]:
        """Yield the parts of the member's text, in order: name, colon, value, and the white space around them."""
        yield self.before
        yield self.label
        yield self.colon
        yield from self.value.pieces()
        yield self.after


@dataclass(slots=True)
class JsonText:
    """A JSON value as text. `text`: the text before any edit, without white space around it.

    `names`: the members of an object that was split. `items`: the members of a list that was split. Else both are None.
    """

    text: str
    names: dict[str, Member] | None = field(default=None, repr=False)
    items: list[Member] | None = field(default=None, repr=False)

    def pieces(self) -> Iterator[str]:
        """Yield the parts of the value's text, with the edits so far."""
        members = list(self.names.values()) if self.names is not None else self.items
        if members is None:
            yield self.text
            return
        yield self.text[0]
        for number, member in enumerate(members):
            yield "," if number else ""
            yield from member.pieces()
        yield self.text[-1]

    def written(self) -> str:
        """Return the value's text, with the edits so far."""
        return "".join(self.pieces())

    def members(self, budget: Budget) -> dict[str, Member] | list[Member] | None:
        """Return the members of this value: a dict for an object, a list for a list, None for any other value.

        Raises:
            TooMuchWork: there are too many members, or the edit would read more characters than `budget` has left.
            ValueError: the text is not JSON, or an object has the same name twice.
        """
        if self.names is None and self.items is None and self.text[:1] in {"{", "["}:
            budget.pay(len(self.text))
            found = list(_split(self.text))
            if self.text[0] == "[":
                self.items = found
            else:
                self.names = {json.loads(member.label): member for member in found}
                if len(self.names) < len(found):
                    raise ValueError("it has the same name twice")
        return self.names if self.names is not None else self.items


def put_name(names: dict[str, Member], name: str, value: JsonText) -> None:
    """Set a member of an object. A new member is added at the end, with white space like the members before it."""
    if name in names:
        names[name].value = value
        return
    others = list(names.values())
    new = Member(value, label=json.dumps(name, ensure_ascii=False), colon=others[-1].colon if others else ":")
    _follow(others, new)
    names[name] = new


def put_item(items: list[Member], index: int, value: JsonText) -> None:
    """Insert a value into a list before the item `index`; `index` may be the number of items."""
    new = Member(value)
    if index == len(items):
        _follow(items, new)
    else:
        new.before = items[index].before
        if index == 0:
            items[0].before = items[1].before if len(items) > 1 else items[0].before
    items.insert(index, new)


def take_out(members: dict[str, Member] | list[Member], key: str | int) -> JsonText:
    """Remove a member of an object (`key` is its name) or a list (`key` is its index), and return its value."""
    every = list(members.values()) if isinstance(members, dict) else list(members)
    gone = members.pop(key)  # type: ignore[arg-type]  # a name for an object, a number for a list
    at = next(number for number, member in enumerate(every) if member is gone)
    if at == 0 and len(every) > 1:
        every[1].before = gone.before
    if at == len(every) - 1 and at:
        every[at - 1].after = gone.after
    return gone.value


def _follow(others: list[Member], new: Member) -> None:
    """Give a new last member the white space of the members before it."""
    if others:
        new.before = others[-1].before
        new.after, others[-1].after = others[-1].after, others[0].after if len(others) > 1 else ""


def _split(text: str) -> Iterator[Member]:
    """Yield the members of the text of an object or list."""
    named, closing = text[0] == "{", "}" if text[0] == "{" else "]"
    at, number = 1, 0
    if text[_blank(text, at)] == closing:
        return
    while True:
        number += 1
        if number > MEMBERS:
            raise TooMuchWork(f"an object or list on the path has more than {MEMBERS:,} members")
        member, at = _member(text, at, named=named)
        yield member
        if text[at] == closing:
            return
        if text[at] != ",":
            raise json.JSONDecodeError("a comma is missing", text, at)
        at += 1


def _member(text: str, at: int, *, named: bool) -> tuple[Member, int]:
    """Return the member that begins at a position, and the position of the comma or bracket after it."""
    begin = _blank(text, at)
    before, label, colon = text[at:begin], "", ""
    if named:
        _, end = _DECODER.raw_decode(text, begin)
        label = text[begin:end]
        begin = _blank(text, _blank(text, end) + 1)
        colon = text[end:begin]
    _, end = _DECODER.raw_decode(text, begin)
    after = _blank(text, end)
    return Member(JsonText(text[begin:end]), before, label, colon, text[end:after]), after


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
