"""Two versions of a letter side by side: body and attributes line by line, and what differs in space alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reprocessing.admin.messages.readable_bytes import laid_out, readable, visible
from reprocessing.domain.message import text_diff
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.text_diff import Diff

Version = tuple[bytes, Mapping[str, Attribute]]
_WAYS: Final = {" ": "same", "+": "put-in", "-": "taken-out", "@": "place"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of a difference: `way` is its class on the page."""

    way: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """What differs in one part of a letter.

    Attributes:
        lines: none: nothing does, as far as lines tell.
        cut: lines beyond those that are shown.
        note: what the lines do not tell.
    """

    name: str
    lines: tuple[Shown, ...]
    cut: int
    note: str


def of(before: Version, after: Version) -> list[Part]:
    """Body and attributes of two versions."""
    return [
        _part("Body", _text(before[0]), _text(after[0]), same=before[0] == after[0]),
        _part("Attributes", _lines(before[1]), _lines(after[1]), same=dict(before[1]) == dict(after[1])),
    ]


def _part(name: str, before: str, after: str, *, same: bool) -> Part:
    found = text_diff.between(before, after)
    note = "It is the same." if same else "" if found.lines else "It differs in the space between its words alone."
    return Part(name, tuple(_shown(found)), found.cut, note)


def _shown(found: Diff) -> Iterator[Shown]:
    for line in found.lines:
        yield Shown(_WAYS[line.mark], line.mark, visible(line.text))


def _text(body: bytes) -> str:
    try:
        return laid_out(body)
    except UnicodeDecodeError:
        return readable(body).text


def _lines(attributes: Mapping[str, Attribute]) -> str:
    return "\n".join(_line(name, one) for name, one in sorted(attributes.items()))


def _line(name: str, one: Attribute) -> str:
    value = one.value if isinstance(one.value, str) else readable(one.value).text
    return f"{name} ({one.type}): {value}"
