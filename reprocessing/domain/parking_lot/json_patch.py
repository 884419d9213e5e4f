"""Read a JSON Patch (RFC 6902): the text that says how to change a JSON body. `patched_body` applies the patch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from reprocessing.domain.errors import InvalidPatch
from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_text import Budget, JsonText, Member
from reprocessing.domain.message.json_view import Unreadable

#: Max operations of a patch, and max characters of its text.
MOST_OPERATIONS: Final = 100
LONGEST_PATCH: Final = 65_536
_DEEPEST: Final = json_view.DEPTH
_BROKEN_ESCAPE: Final = re.compile(r"~(?![01])")
_EXAMPLE: Final = '[{"op": "replace", "path": "/customer/country", "value": "DE"}]'


class Op(StrEnum):
    """What an operation of a patch does."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"
    MOVE = "move"
    COPY = "copy"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON Pointer (RFC 6901), such as /lines/0/price. `text`: as it was given. `parts`: its names and numbers."""

    text: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Pointer:
        """Return the pointer that a text describes. Raise InvalidPatch, which says what to write."""
        if text and not text.startswith("/"):
            raise InvalidPatch(f"The path {text[:60]!a} does not begin with /. Example: /customer/country")
        if _BROKEN_ESCAPE.search(text):
            raise InvalidPatch(f"The path {text[:60]!a} has a ~ that is neither ~0 (for ~) nor ~1 (for /).")
        parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])
        if len(parts) > _DEEPEST:
            raise InvalidPatch(f"A path has more than {_DEEPEST} parts.")
        return cls(text, parts)

    def __str__(self) -> str:
        return self.text or "the whole body"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a patch.

    `value`: for add, replace and test, the JSON text of the value. `start`: for move and copy, the pointer in `from`.
    """

    op: Op
    path: Pointer
    start: Pointer | None = None
    value: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.op} {f'{self.start} to ' if self.start else ''}{self.path}"


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A patch: its operations, in order, and its text, as a person wrote it."""

    text: str = field(repr=False)
    operations: tuple[Operation, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPatch:
        """Return the patch that a text describes. Raise InvalidPatch, which says what is wrong, and what to write."""
        if len(text) > LONGEST_PATCH:
            raise InvalidPatch(f"The patch has {len(text):,} characters; at most {LONGEST_PATCH:,} are allowed.")
        found = json_view.read(text.encode(errors="surrogatepass"))
        if isinstance(found, Unreadable):
            raise InvalidPatch(f"The patch cannot be read: {found.why}. Example: {_EXAMPLE}")
        if not isinstance(found, list) or not found:
            raise InvalidPatch(f"The patch is not a list of operations. Example: {_EXAMPLE}")
        if len(found) > MOST_OPERATIONS:
            raise InvalidPatch(f"The patch has {len(found):,} operations; at most {MOST_OPERATIONS} are allowed.")
        operations = tuple(_operations(JsonText(text.strip())))
        if all(operation.op is Op.TEST for operation in operations):
            raise InvalidPatch("The patch only has tests, so it would change nothing. Add an operation that changes.")
        return cls(text, operations)


def single_operation(op: str, path: str, value: str) -> str:
    """Return the text of a patch with one operation. A `value` that is not JSON becomes a JSON string."""
    members = f'{{"op": {json.dumps(op)}, "path": {json.dumps(path)}'
    if op == Op.REMOVE:
        return f"[{members}}}]"
    is_json = not isinstance(json_view.read(value.encode(errors="surrogatepass")), Unreadable)
    return f'[{members}, "value": {value.strip() if is_json else json.dumps(value, ensure_ascii=False)}}}]'


def _operations(patch: JsonText) -> Iterator[Operation]:
    try:
        for number, item in enumerate(patch.members(Budget()) or (), 1):
            assert isinstance(item, Member)  # noqa: S101  a list has items
            members = item.value.members(Budget())
            if not isinstance(members, dict):
                raise InvalidPatch(f"Operation {number} is not an object. Example: {_EXAMPLE}")
            yield _operation(number, {name: member.value.text for name, member in members.items()})
    except ValueError as error:
        raise InvalidPatch(f"The patch cannot be used: {error}.") from error


def _operation(number: int, given: dict[str, str]) -> Operation:
    """Return the operation that a JSON object describes. Its further members are ignored, as RFC 6902 says.

    `number`: the operation's place in the patch. `given`: the object's members, with each value as JSON text.
    """
    known = ", ".join(Op)
    name = _text(given, "op")
    if name not in list(Op):
        raise InvalidPatch(f'Operation {number} needs "op", one of: {known}.')
    op, path = Op(name), _text(given, "path")
    if path is None:
        raise InvalidPatch(f'Operation {number} needs "path", such as /customer/country.')
    pointer, start, value = Pointer.parse(path), None, None
    if op in {Op.MOVE, Op.COPY}:
        begins = _text(given, "from")
        if begins is None:
            raise InvalidPatch(f'Operation {number} ({op}) needs "from", a path such as /customer/address.')
        start = Pointer.parse(begins)
        if op is Op.MOVE and pointer.parts[: len(start.parts)] == start.parts and pointer != start:
            raise InvalidPatch(f"Operation {number} moves {start} into itself.")
    if op in {Op.ADD, Op.REPLACE, Op.TEST}:
        if "value" not in given:
            raise InvalidPatch(f'Operation {number} ({op}) needs "value".')
        value = given["value"]
    if op is Op.REMOVE and not pointer.parts:
        raise InvalidPatch(f"Operation {number} removes the whole body. Discard the messages instead.")
    return Operation(op, pointer, start, value)


def _text(given: dict[str, str], name: str) -> str | None:
    found = json.loads(given.get(name, "null"), parse_int=str, parse_float=str) if name in given else None
    return found if isinstance(found, str) and given[name].startswith('"') else None
