"""The difference between two versions of a message: body and attributes, line by line."""

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
    """One line of a difference; `way` is its CSS class."""

    way: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """The difference in body or attributes. `cut`: lines that are not shown; `note`: what the lines do not show."""

    name: str
    lines: tuple[Shown, ...]
    cut: int
    note: str


def of(before: Version, after: Version) -> list[Part]:
    """Return the differences in body and attributes."""
    return [
        _part("Body", _text(before[0]), _text(after[0]), same=before[0] == after[0]),
        _part("Attributes", _lines(before[1]), _lines(after[1]), same=dict(before[1]) == dict(after[1])),
    ]


def _part(name: str, before: str, after: str, *, same: bool) -> Part:
    found = text_diff.between(before, after)
    note = "No difference." if same else "" if found.lines else "Only white space differs."
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
    return "\n".join(_line(name, attribute) for name, attribute in sorted(attributes.items()))


def _line(name: str, attribute: Attribute) -> str:
    value = attribute.value if isinstance(attribute.value, str) else readable(attribute.value).text
    return f"{name} ({attribute.type}): {value}"
