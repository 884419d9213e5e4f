"""Apply a JSON Patch to the JSON body of a message. Bytes that the patch does not name stay as they are.

The work is bounded, because one patch is applied to many messages: see `LARGEST_BODY` and `json_text.WORK`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, assert_never

from reprocessing.domain.message import json_text, json_view
from reprocessing.domain.message.json_text import Budget, JsonText, Member, TooMuchWork
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.parking_lot.json_patch import JsonPatch, Op, Operation, Pointer

#: Max characters of a body while it is patched, as many as SQS accepts bytes.
LARGEST_BODY: Final = 1_048_576
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Unfit:
    """A patch does not fit a body, because of `why`, which contains no message data."""

    why: str


def apply(patch: JsonPatch, body: bytes) -> bytes | Unfit:
    """Return the patched body, or why the patch does not fit the body. Never raises.

    A body is refused if it is not JSON, nests over 64 deep, or has an object with the same name twice. Consumers may
    read such bodies in different ways.
    """
    if why := _why_not_patchable(body):
        return Unfit(why)
    text = body.decode()
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    work = _Work(JsonText(text.strip()), len(text))
    try:
        for operation in patch.operations:
            if why := work.do(operation):
                return Unfit(why)
        after = f"{head}{work.root.written()}{tail}".encode()
    except TooMuchWork as error:
        return Unfit(str(error))
    except (ValueError, RecursionError):
        return Unfit("it cannot be patched: its JSON is too deep, or has half a surrogate pair")
    if after == body:
        return Unfit("the patch changes nothing in it")
    found = json_view.read(after)
    return Unfit(f"after the patch it would be unusual JSON: {found.why}") if isinstance(found, Unreadable) else after


class _Work:
    """Patches one body. `root`: the body, after the operations that were done."""

    def __init__(self, root: JsonText, size: int) -> None:
        self.root, self._size, self._budget = root, size, Budget()

    def do(self, operation: Operation) -> str:
        """Apply one operation to the body. Return why this is not possible; empty: the operation was applied."""
        match operation.op:
            case Op.ADD:
                return self._add(operation.path, JsonText(operation.value or ""))
            case Op.REPLACE:
                return self._replace(operation.path, JsonText(operation.value or ""))
            case Op.REMOVE:
                return self._remove(operation.path)
            case Op.TEST:
                return self._test(operation)
            case Op.MOVE | Op.COPY:
                return self._from(operation)
            case _ as never:
                assert_never(never)

    def _from(self, operation: Operation) -> str:
        start = operation.start or operation.path
        value = self._find(start)
        if value is None:
            return _missing(start)
        if operation.op is Op.MOVE and start == operation.path:
            return ""
        copied = JsonText(value.written())
        self._budget.pay(len(copied.text))
        if operation.op is Op.MOVE and (why := self._remove(start)):
            return why
        return self._add(operation.path, copied)

    def _test(self, operation: Operation) -> str:
        found = self._find(operation.path)
        if found is None:
            return _missing(operation.path)
        text = found.written()
        self._budget.pay(len(text))
        if _is_equal(json_view.read(text.encode()), json_view.read((operation.value or "").encode())):
            return ""
        return f"the test of {operation.path} failed"

    def _add(self, path: Pointer, value: JsonText) -> str:
        if not path.parts:
            self.root = value
            return self._too_large(len(value.text))
        around, last = self._members(path.parts[:-1]), path.parts[-1]
        if isinstance(around, dict):
            json_text.put_name(around, last, value)
        elif isinstance(around, list):
            index = len(around) if last == "-" else _index(last)
            if index is None or index > len(around):
                return _missing(path)
            json_text.put_item(around, index, value)
        else:
            return _missing(path)
        return self._too_large(len(value.text))

    def _replace(self, path: Pointer, value: JsonText) -> str:
        if not path.parts:
            self.root = value
        elif (member := self._member(path)) is not None:
            member.value = value
        else:
            return _missing(path)
        return self._too_large(len(value.text))

    def _remove(self, path: Pointer) -> str:
        if not path.parts:
            return "the whole body cannot be removed"
        if self._member(path) is None:
            return _missing(path)
        around, last = self._members(path.parts[:-1]), path.parts[-1]
        if around is not None:
            json_text.take_out(around, last if isinstance(around, dict) else int(last))
        return ""

    def _find(self, path: Pointer) -> JsonText | None:
        if not path.parts:
            return self.root
        member = self._member(path)
        return None if member is None else member.value

    def _member(self, path: Pointer) -> Member | None:
        return _member_of(self._members(path.parts[:-1]), path.parts[-1])

    def _members(self, parts: tuple[str, ...]) -> dict[str, Member] | list[Member] | None:
        """Return the members of the object or list at a path (`parts`); None: there is no object or list."""
        at = self.root
        for part in parts:
            member = _member_of(at.members(self._budget), part)
            if member is None:
                return None
            at = member.value
        return at.members(self._budget)

    def _too_large(self, added: int) -> str:
        """Return that the body is too large after `added` more characters; empty: the body is not too large."""
        self._size += added
        if self._size > LARGEST_BODY:  # removed text is subtracted only now, because measuring takes time
            self._size = len(self.root.written())
            self._budget.pay(self._size)
        return f"it would be larger than {LARGEST_BODY:,} bytes" if self._size > LARGEST_BODY else ""


def _why_not_patchable(body: bytes) -> str:
    found = json_view.read(body)
    if isinstance(found, Unreadable):
        return found.why.partition(":")[0]  # without the place of the error, so that equal reasons are counted
    try:
        json.loads(body, parse_int=str, parse_float=str, object_pairs_hook=_unique)
    except ValueError:
        return "an object in it has the same name twice"
    return ""


def _unique(members: list[tuple[str, object]]) -> None:
    if len({name for name, _ in members}) < len(members):
        raise ValueError


def _member_of(members: dict[str, Member] | list[Member] | None, part: str) -> Member | None:
    if isinstance(members, dict):
        return members.get(part)
    index = _index(part)
    return members[index] if members is not None and index is not None and index < len(members) else None


def _index(part: str) -> int | None:
    return int(part) if _INDEX.fullmatch(part) else None


def _missing(path: Pointer) -> str:
    return f"it has nothing at {path}"


def _is_equal(one: JsonValue | Unreadable, other: JsonValue | Unreadable) -> bool:
    """Return whether two JSON values are equal as RFC 6902 says: numbers by value, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    if _is_number(one) and _is_number(other):
        return one == other
    return type(one) is type(other) and not isinstance(one, Unreadable) and one == other


def _is_number(value: object) -> bool:
    return not isinstance(value, bool | str | dict | list | Unreadable) and value is not None
