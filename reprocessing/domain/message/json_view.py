"""A body as JSON, for people and for rules: a view beside the bytes, never a replacement of them."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import accumulate

#: Containers within containers; deeper ones are the work of an attacker, or of a bug.
DEPTH = 64

JsonValue = None | bool | int | Decimal | str | list["JsonValue"] | dict[str, "JsonValue"]

# Always matches where a quote stands, to the end of the body if need be: no body makes it start over and over.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # one down, one up: as signed numbers, 1 and -1
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_QUICK_INTEGER = 40  # digits; int() takes quadratic time, and refuses more than 4300


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something is there, but it cannot be read as what it ought to be.

    Attributes:
        is_json: other readers of JSON may well read it.
    """

    why: str
    is_json: bool = field(default=True, compare=False)


def read(body: bytes, *, halves: bool = False) -> JsonValue | Unreadable:
    """The JSON value of a body; for any other bytes, why they have none.

    Numbers are exact: int, or Decimal where they have a fraction, an exponent or very many digits. Of equal names in
    one object the last one counts. Refused: nesting beyond `DEPTH`, NaN and Infinity, half surrogate pairs unless
    `halves` are let stand, a byte order mark, and what is not UTF-8. Takes time linear in the length of the body.
    """
    try:
        text = body.decode()
        if is_too_deep(body):
            return Unreadable(f"its JSON is nested more than {DEPTH} deep")
        value: JsonValue = json.loads(text, parse_int=_integer, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, InvalidOperation) as error:
        is_json = not isinstance(error, UnicodeDecodeError | json.JSONDecodeError) or _is_json_behind_a_mark(body)
        return Unreadable(_why(error), is_json=is_json)
    if not halves and _ESCAPED_SURROGATE.search(text) and any(_SURROGATE.search(part) for part in _strings(value)):
        return Unreadable("its text holds half a surrogate pair, which is no character")
    return value


def is_too_deep(body: bytes) -> bool:
    """Whether its brackets nest beyond `DEPTH`; of bytes that are no JSON it says nothing."""
    return _depth(body) > DEPTH


def written(number: int | Decimal) -> str:
    """The one text of a number: 1, 1.0 and 10e-1 are all "1". Never rounded, and short for any exponent."""
    sign, digits, exponent = Decimal(number).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{number} is not a number")  # noqa: TRY004 - its type is right, its value is NaN or infinite
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    if stripped.strip("0") == "":
        return "0"
    minus = "-" if sign else ""
    if abs(exponent) <= 2 * _QUICK_INTEGER:
        return minus + format(Decimal(f"{stripped}E{exponent}"), "f")
    return f"{minus}{stripped}E{exponent}"


def _is_json_behind_a_mark(body: bytes) -> bool:
    """Whether it is JSON for those who skip a byte order mark."""
    rest = body.removeprefix(BOM_UTF8)
    if rest == body or rest.startswith(BOM_UTF8):
        return False
    value = read(rest)
    return not isinstance(value, Unreadable) or value.is_json


def _why(error: ValueError | InvalidOperation) -> str:
    match error:
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case json.JSONDecodeError():
            return f"it is not JSON: {error.msg} at character {error.pos}"
        case InvalidOperation():
            return "a number in it is beyond every bound"
        case _:
            return str(error)


def _depth(body: bytes) -> int:
    """How deep the brackets nest; no deeper than there are opening ones, which is quicker to count."""
    if body.count(b"[") + body.count(b"{") <= DEPTH:
        return 0
    steps = _STRING.sub(b"", body).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _QUICK_INTEGER else Decimal(text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


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
