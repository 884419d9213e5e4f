"""Read a message body as JSON, for people and rules. Redrive always sends the original bytes."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import NoReturn

#: Max nesting of JSON objects and lists.
DEPTH = 64

JsonValue = None | bool | int | Decimal | str | list["JsonValue"] | dict[str, "JsonValue"]

# A JSON string. Without a closing quote, it matches up to the end of the body, so that a search takes linear time.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # signed bytes: 1 for an opening bracket, else -1
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_QUICK_INTEGER = 40  # digits; int() takes quadratic time, and refuses more than 4300


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text cannot be read as expected, because of `why`. `is_json`: it is JSON, which other parsers may accept."""

    why: str
    is_json: bool = field(default=True, compare=False)


def read(body: bytes, *, halves: bool = False) -> JsonValue | Unreadable:
    """Return the JSON value of a body, or why the body cannot be read, in linear time.

    Numbers are exact: int, or Decimal for fractions, exponents and over 40 digits. If an object repeats a name, the
    last value counts. Return `Unreadable` for nesting over 64 deep (`DEPTH`), NaN, Infinity, half surrogate pairs
    (unless `halves`), a byte order mark, and bytes that are not UTF-8.
    """
    try:
        text = body.decode()
        if is_too_deep(body):
            return Unreadable(f"its JSON is nested more than {DEPTH} deep")
        value: JsonValue = json.loads(text, parse_int=_integer, parse_float=Decimal, parse_constant=refuse_constant)
    except (ValueError, InvalidOperation) as error:
        is_json = not isinstance(error, UnicodeDecodeError | json.JSONDecodeError) or _is_json_behind_a_mark(body)
        return Unreadable(why_unreadable(error), is_json=is_json)
    if not halves and _ESCAPED_SURROGATE.search(text) and any(_SURROGATE.search(part) for part in _strings(value)):
        return Unreadable("its text holds half a surrogate pair, which is no character")
    return value


def is_too_deep(body: bytes) -> bool:
    """Return whether a JSON body nests objects and lists more than 64 deep. The body must be JSON."""
    if body.count(b"[") + body.count(b"{") <= DEPTH:  # fewer brackets cannot nest deeper; counting is fast
        return False
    steps = _STRING.sub(b"", body).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > DEPTH


def number_text(number: int | Decimal) -> str:
    """Return the canonical text of a number: "1" for 1, 1.0 and 10e-1. Never rounded, short for any exponent.

    Raise ValueError if the number is infinite or NaN.
    """
    sign, digits, exponent = Decimal(number).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is not a number")  # noqa: TRY004 - the type is right, the value is not
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    if stripped.strip("0") == "":
        return "0"
    minus = "-" if sign else ""
    if abs(exponent) <= 2 * _QUICK_INTEGER:
        return minus + format(Decimal(f"{stripped}E{exponent}"), "f")
    return f"{minus}{stripped}E{exponent}"


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which JSON does not allow. For `parse_constant` of a JSON decoder."""
    raise ValueError(f"{name} is not a JSON number")


def _is_json_behind_a_mark(body: bytes) -> bool:
    """Return whether a body is JSON after a byte order mark, which some parsers skip."""
    rest = body.removeprefix(BOM_UTF8)
    if rest == body or rest.startswith(BOM_UTF8):
        return False
    value = read(rest)
    return not isinstance(value, Unreadable) or value.is_json


def why_unreadable(error: ValueError | InvalidOperation) -> str:
    """Return in words why a JSON parser refused a text, from the parser's error."""
    match error:
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case json.JSONDecodeError():
            return f"it is not JSON: {error.msg} at character {error.pos}"
        case InvalidOperation():
            return "it has a number that is out of range"
        case _:
            return str(error)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _QUICK_INTEGER else Decimal(text)


def _strings(value: JsonValue) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case list(items):
                left.extend(items)
            case dict(members):
                yield from members
                left.extend(members.values())
            case _:
                pass
