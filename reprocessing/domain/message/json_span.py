"""Extract the values of a JSON object from its text, byte for byte, so that they can be sent unchanged."""

from __future__ import annotations

import json
import re
from typing import Final

from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_view import Unreadable

_BLANK: Final = re.compile(r"[ \t\n\r]*+")


def member_bytes(body: bytes) -> dict[str, bytes] | Unreadable:
    """Return the members of a JSON object: the unchanged bytes of each value, by name. Takes linear time.

    Return `Unreadable` if the body is no JSON object, nests over 64 deep, or repeats a name. Parsers read a repeated
    name in different ways.
    """
    try:
        text = body.decode()
        if json_view.is_too_deep(body):
            return Unreadable(f"its JSON is nested more than {json_view.DEPTH} deep")
        return _members(text)
    except ValueError as error:
        is_json = not isinstance(error, UnicodeDecodeError | json.JSONDecodeError)
        return Unreadable(json_view.why_unreadable(error), is_json=is_json)


def json_string_text(raw: bytes | None) -> str | None:
    """Return the text of a JSON string; None if the bytes are no JSON string, or the text has no UTF-8 form."""
    if raw is None or not raw.startswith(b'"'):
        return None
    try:
        text = json.loads(raw)
        text.encode()
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def _members(text: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = _past(text, 0, "{")
    closed = text[at : at + 1] == "}"
    while not closed:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("a name is missing", text, at)
        name, at = _DECODER.raw_decode(text, at)
        begin = _past(text, at, ":")
        _, end = _DECODER.raw_decode(text, begin)
        if name in found:
            raise ValueError("it has the same name twice")
        found[name] = text[begin:end].encode()
        at = _blank(text, end)
        closed = text[at : at + 1] == "}"
        if not closed:
            at = _past(text, at, ",")
    if _blank(text, at + 1) != len(text):
        raise json.JSONDecodeError("text follows the object", text, at + 1)
    return found


def _past(text: str, at: int, mark: str) -> int:
    """Return the position after the character `mark` and the blanks around it; ValueError: `mark` is missing."""
    at = _blank(text, at)
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"{mark} is missing", text, at)
    return _blank(text, at + 1)


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


# Numbers remain texts: int() takes quadratic time, and refuses more than 4300 digits.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=json_view.refuse_constant)
