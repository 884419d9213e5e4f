"""Two texts line by line: what is taken out, what is put in. In bounded time, whatever the texts."""

from __future__ import annotations

import difflib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

#: Lines around a change that stay the same and are shown.
_CONTEXT: Final = 3
#: Lines of either text that are compared with each other, and shown where there are more: then all is replaced.
_COMPARED: Final = 1_000
# A longer line is shown in parts. Which words end one depends on the words alone: behind a change in a long line both
# texts are soon parted alike again.
_LONG: Final = 160
_WORD: Final = re.compile(r"[^\s,;&<{\[]{0,160}[\s,;&<{\[]?")
_ENDS_A_PART: Final = 8  # one word in so many


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `mark` is "-" for one taken out, "+" for one put in, " " for one that stays, "@" for a place."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """What is different; no lines: nothing is. `cut`: lines beyond those that are shown."""

    lines: tuple[Line, ...]
    cut: int = 0


@dataclass(frozen=True, slots=True)
class _Text:
    numbers: Sequence[int]
    parts: Sequence[str]


def between(before: str, after: str) -> Diff:
    """The lines that differ, each change with the lines around it."""
    if before == after:
        return Diff(())
    old, new = _parted(before), _parted(after)
    head = _common(old.parts, new.parts)
    tail = _common(old.parts[head:][::-1], new.parts[head:][::-1])
    a, b = old.parts[head : len(old.parts) - tail], new.parts[head : len(new.parts) - tail]
    cut = 0
    if max(len(a), len(b)) > _COMPARED:
        found = [Line("-", one) for one in a[:_COMPARED]] + [Line("+", one) for one in b[:_COMPARED]]
        cut = max(0, len(a) - _COMPARED) + max(0, len(b) - _COMPARED)
    else:
        found = list(_compared(a, b, old.numbers[head:]))
    first = max(0, head - _CONTEXT)
    lines = (
        Line("@", f"line {old.numbers[first]}"),
        *(Line(" ", one) for one in old.parts[first:head]),
        *found,
        *(Line(" ", one) for one in old.parts[len(old.parts) - tail :][:_CONTEXT]),
    )
    return Diff(lines, cut)


def _compared(a: Sequence[str], b: Sequence[str], numbers: Sequence[int]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, a, b)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield Line("@", f"line {numbers[group[0][1]]}")
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (Line(" ", one) for one in a[i:j])
            else:
                yield from (Line("-", one) for one in a[i:j])
                yield from (Line("+", one) for one in b[k:m])


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many of the first are the same in both."""
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return number
    return min(len(a), len(b))


def _parted(text: str) -> _Text:
    numbers: list[int] = []
    parts: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = [line] if len(line) <= _LONG else list(_parts(line))
        parts += found
        numbers += [number] * len(found)
    return _Text(numbers, parts)


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
