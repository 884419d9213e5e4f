"""Bytes, keys and durations in a form that a person can read and that cannot deceive or harm who reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.message import body_format, json_view
from reprocessing.domain.message.body_format import Dialect
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.safe_text import visible

__all__ = ["LONGEST", "Readable", "as_spoken", "duration", "laid_out", "readable", "visible"]

#: Characters of a body, or of an attribute, that a page shows; the whole is there to be downloaded.
LONGEST = 100_000
_INDENT = "  "
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
# Each alternative ends somewhere, with the text if need be: no body makes it start over and over.
_XML = re.compile(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?:[^<>"']++|"[^"]*+"?|'[^']*+'?)*>?|[^<]++""", re.DOTALL
)
_DEEPEST = 64
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Readable:
    """Bytes as a page shows them: `form` is JSON, text or hex; `size` bytes there are; `cut`: not all are shown."""

    form: str
    text: str
    size: int
    cut: bool


def readable(body: bytes) -> Readable:
    """A body by what it is: JSON indented, text as it is, anything else in hex; never more than `LONGEST` characters.

    JSON keeps every name, number and escape as it was written: only the space between them is another.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return _hex(body)
    if isinstance(json_view.read(body), Unreadable):
        return Readable("text", visible(text[:LONGEST]), len(body), cut=len(text) > LONGEST)
    shown, cut = _joined(_indented(text))
    return Readable("JSON", visible(shown), len(body), cut=cut)


def as_spoken(body: bytes, tongue: Dialect) -> Readable:
    """A body in the form of its dialect: a form by its fields, XML indented, all else as `readable` has it."""
    if tongue not in {Dialect.FORM, Dialect.XML}:
        return readable(body)
    text = body.decode()
    pieces = _fields(text) if tongue is Dialect.FORM else _nested(text[:LONGEST])
    shown, cut = _joined(pieces)
    return Readable(tongue.value, visible(shown), len(body), cut=cut or (tongue is Dialect.XML and len(text) > LONGEST))


def laid_out(body: bytes) -> str:
    """The whole of a text, as it is compared with another: JSON indented, all else as it is."""
    text = body.decode()
    return text if isinstance(json_view.read(body), Unreadable) else "".join(_indented(text))


def duration(length: timedelta | None) -> str:
    """A length of time in its two largest units: "3 d 4 h"; "over" once nothing is left of it, "-" for none."""
    if length is None:
        return "-"
    seconds = int(length.total_seconds())
    if seconds <= 0:
        return "over"
    parts: list[str] = []
    for unit, worth in _UNITS:
        count, seconds = divmod(seconds, worth)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def past(length: timedelta) -> str:
    """How long ago something was, in the same units; what was just now was "0 s" ago."""
    return duration(length) if length >= timedelta(seconds=1) else "0 s"


def _hex(body: bytes) -> Readable:
    most = LONGEST // 4  # a byte takes two digits, its share of the spaces, and a character beside them
    lines = []
    for start in range(0, min(len(body), most), 16):
        row = body[start : start + 16]
        beside = "".join(chr(one) if 32 <= one < 127 else "." for one in row)  # noqa: PLR2004 - printable ASCII
        lines.append(f"{start:06x}  {row.hex(' '):<47}  {beside}")
    return Readable("hex", "\n".join(lines), len(body), cut=len(body) > most)


def _joined(pieces: Iterator[str]) -> tuple[str, bool]:
    kept: list[str] = []
    left = LONGEST
    for piece in pieces:
        kept.append(piece[:left])
        if len(piece) > left:
            return "".join(kept), True
        left -= len(piece)
    return "".join(kept), False


def _indented(text: str) -> Iterator[str]:
    """The tokens of JSON that is known to be valid, with the space a person reads by."""
    depth = 0
    fresh = False  # the last token opened a container, which may turn out to be empty
    for found in _TOKEN.finditer(text):
        part = found.group()
        closing = part in "]}"
        depth -= closing
        if fresh is not closing and (fresh or closing):
            yield "\n" + _INDENT * depth
        fresh = part in "[{"
        depth += fresh
        yield part
        if part == ":":
            yield " "
        elif part == ",":
            yield "\n" + _INDENT * depth


def _fields(text: str) -> Iterator[str]:
    for name, value in body_format.form(text):
        yield f"{name} = {value}\n"


def _nested(text: str) -> Iterator[str]:
    """XML by its tags, an element of plain text in one line; nothing of it is resolved or fetched."""
    depth = 0
    before = ""
    for part in (found.group().strip() for found in _XML.finditer(text)):
        if not part:
            continue
        depth -= part.startswith("</")
        # What closes a text, and the text behind what opens, stay in the line.
        joined = (part.startswith("</") and not before.startswith("<")) or (_opens(before) and not part.startswith("<"))
        yield part if joined or not before else "\n" + _INDENT * min(max(depth, 0), _DEEPEST) + part
        depth += _opens(part)
        before = part


def _opens(part: str) -> bool:
    return part.startswith("<") and not part.startswith(("</", "<!", "<?")) and not part.endswith("/>")
