"""Compare two texts line by line, in bounded time."""

from __future__ import annotations

import difflib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_CONTEXT: Final = 3  # equal lines that are shown before and after a change
#: Max lines that are compared. Above that, all lines from the first to the last change count as replaced.
_COMPARED: Final = 1_000
# A line over 160 characters is split into parts. A checksum of each word decides whether a part ends after the word. So
# both texts are split after the same words, also behind a change.
_LONG: Final = 160
_WORD: Final = re.compile(r"[^\s,;&<{\[]{0,160}[\s,;&<{\[]?")
_ENDS_A_PART: Final = 8  # about one word in 8 ends a part of a long line


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff. `mark` is "-" for removed, "+" for added, " " for unchanged, "@" for a line number."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """The lines of a diff; empty: the texts are equal. `cut`: how many changed lines are not shown."""

    lines: tuple[Line, ...]
    cut: int = 0


def text_diff(before: str, after: str) -> Diff:
    """Return the lines that differ between two texts, with three equal lines before and after each change."""
    if before == after:
        return Diff(())
    (old, numbers), (new, _) = _parted(before), _parted(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    cut = 0
    if max(len(a), len(b)) > _COMPARED:
        found = [Line("-", part) for part in a[:_COMPARED]] + [Line("+", part) for part in b[:_COMPARED]]
        cut = max(0, len(a) - _COMPARED) + max(0, len(b) - _COMPARED)
    else:
        found = list(_compared(a, b, numbers[head:]))
    first = max(0, head - _CONTEXT)
    lines = (
        Line("@", f"line {numbers[first]}"),
        *(Line(" ", part) for part in old[first:head]),
        *found,
        *(Line(" ", part) for part in old[len(old) - tail :][:_CONTEXT]),
    )
    return Diff(lines, cut)


def _compared(a: Sequence[str], b: Sequence[str], numbers: Sequence[int]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, a, b)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield Line("@", f"line {numbers[group[0][1]]}")
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (Line(" ", part) for part in a[i:j])
            else:
                yield from (Line("-", part) for part in a[i:j])
                yield from (Line("+", part) for part in b[k:m])


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    for number, (part, other) in enumerate(zip(a, b, strict=False)):
        if part != other:
            return number
    return min(len(a), len(b))


def _parted(text: str) -> tuple[list[str], list[int]]:
    """Split long lines of a text into parts. Return all parts and each part's line number. A short line is one part."""
    numbers: list[int] = []
    parts: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = [line] if len(line) <= _LONG else list(_parts(line))
        parts += found
        numbers += [number] * len(found)
    return parts, numbers


def _parts(line: str) -> Iterator[str]:
    part = ""
    for word in _WORD.findall(line):
        if len(part) + len(word) > _LONG:
            yield part
            part = ""
        part += word
        if zlib.crc32(word.encode(errors="surrogatepass")) % _ENDS_A_PART == 0:
            yield part
            part = ""
    if part:
        yield part
