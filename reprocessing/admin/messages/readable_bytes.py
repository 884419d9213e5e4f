"""Show bytes and durations as text, with hidden characters made visible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from reprocessing.domain.message import body_format, json_view
from reprocessing.domain.message.body_format import BodyFormat
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.safe_text import visible

__all__ = ["LONGEST", "NOT_IN_SQS", "Readable", "duration", "indented", "readable", "readable_as", "visible"]

#: Max characters of a body, or of an attribute, that a page shows; the whole body can be downloaded.
LONGEST = 100_000
#: What pages show instead of the time left in SQS, if SQS has no copy of a message.
NOT_IN_SQS: Final = "not in SQS"
_INDENT = "  "
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
# Each alternative also matches an unfinished token at the end of the text. Otherwise the search could take very long.
_XML = re.compile(
    r"""<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?:[^<>"']++|"[^"]*+"?|'[^']*+'?)*>?|[^<]++""", re.DOTALL
)
_DEEPEST = 64  # max levels by which XML is indented
_KEY_SHOWN = 60
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Readable:
    """Bytes as text for display.

    Attributes:
        form: how `text` shows the bytes: as JSON, as text, in hex, or as a value of `BodyFormat`, such as XML.
        size: number of bytes.
        cut: whether `text` leaves out the end, because there are too many bytes.
    """

    form: str
    text: str
    size: int
    cut: bool


def readable(body: bytes) -> Readable:
    """Return a body for display: JSON indented, other text unchanged, other bytes in hex.

    At most 100,000 characters are returned (`LONGEST`). In JSON, only white space is changed.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return _hex(body)
    if isinstance(json_view.read(body), Unreadable):
        return Readable("text", visible(text[:LONGEST]), len(body), cut=len(text) > LONGEST)
    shown, cut = _joined(_indented(text))
    return Readable("JSON", visible(shown), len(body), cut=cut)


def readable_as(body: bytes, body_format: BodyFormat) -> Readable:
    """Return a body for display: form data as one field a line, XML indented, other formats as `readable` does."""
    if body_format not in {BodyFormat.FORM, BodyFormat.XML}:
        return readable(body)
    text = body.decode()
    pieces = _fields(text) if body_format is BodyFormat.FORM else _nested(text[:LONGEST])
    shown, cut = _joined(pieces)
    cut = cut or (body_format is BodyFormat.XML and len(text) > LONGEST)
    return Readable(body_format.value, visible(shown), len(body), cut=cut)


def indented(body: bytes) -> str:
    """Return a body for comparison: JSON indented, other text unchanged, nothing cut off.

    Raises:
        UnicodeDecodeError: the body is not text.
    """
    text = body.decode()
    return text if isinstance(json_view.read(body), Unreadable) else "".join(_indented(text))


def short_key(key: str) -> str:
    """Return an ordering key for display in a list, cut after 60 characters."""
    shown = visible(key)
    return shown if len(shown) <= _KEY_SHOWN else f"{shown[:_KEY_SHOWN]}…"


def duration(length: timedelta | None) -> str:
    """Return a duration in its two largest units, such as "3 d 4 h".

    Less than one second is "over", because the function is for remaining times; for ages, there is `time_since`. None
    is "-".
    """
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


def time_since(length: timedelta) -> str:
    """Return a duration as `duration` does, but "0 s" for less than a second."""
    return duration(length) if length >= timedelta(seconds=1) else "0 s"


def _hex(body: bytes) -> Readable:
    most = LONGEST // 4  # a byte takes four characters: two digits, a space, and the printable character
    lines = []
    for start in range(0, min(len(body), most), 16):
        row = body[start : start + 16]
        beside = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)  # noqa: PLR2004 - printable ASCII
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
    """Yield the tokens of valid JSON, with line breaks and indentation between them."""
    depth = 0
    fresh = False  # the last token opened an object or a list, which may be empty
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
    for name, value in body_format.form_fields(text):
        yield f"{name} = {value}\n"


def _nested(text: str) -> Iterator[str]:
    """Yield the parts of XML with one tag per line. An element that has only text stays on one line."""
    depth = 0
    before = ""
    for part in (found.group().strip() for found in _XML.finditer(text)):
        if not part:
            continue
        depth -= part.startswith("</")
        # No line break between an opening tag and text, or between text and a closing tag.
        joined = (part.startswith("</") and not before.startswith("<")) or (_opens(before) and not part.startswith("<"))
        yield part if joined or not before else "\n" + _INDENT * min(max(depth, 0), _DEEPEST) + part
        depth += _opens(part)
        before = part


def _opens(part: str) -> bool:
    return part.startswith("<") and not part.startswith(("</", "<!", "<?")) and not part.endswith("/>")
