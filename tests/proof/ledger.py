"""What was proved so far: one line of JSON an entry, so that two may write at once.

A kill costs what was being tried: one case, or with payloads the lot that travels together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Final

HOME: Final = Path(__file__).resolve().parents[2] / ".proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that was tried.

    Attributes:
        layer: of the proof, such as simulation.
        name: which of its cases: a seed, a cell, a bug.
        passed: whether every promise was kept (of a planted bug: whether it was caught).
        figures: what there is to add up, such as steps and faults that fired.
        why: what was broken, in a sentence; where it passed, what was measured, if anything was.
        at: when, in ISO 8601.
    """

    layer: str
    name: str
    passed: bool
    figures: dict[str, float] = field(default_factory=dict)
    why: str = ""
    at: str = ""


class Ledger:
    """A file of entries. A torn line, which a kill may leave, is passed over."""

    def __init__(self, file: Path = HOME / "ledger.jsonl") -> None:
        self._file = file
        self.noted = 0  #: by this process

    def open_up(self) -> None:
        """Raise an OSError where entries cannot be written and read; nothing is written yet."""
        self._append(b"")
        list(self.entries())

    def note(self, layer: str, name: str, *, passed: bool, why: str = "", **figures: float) -> None:
        self.noted += 1
        at = datetime.now(UTC).isoformat(timespec="seconds")  # noqa: TID251  a diary
        told = {"layer": layer, "name": name, "passed": passed, "why": why, "figures": figures, "at": at}
        self._append(json.dumps(told).encode() + b"\n")

    def entries(self, layer: str | None = None) -> Iterator[Entry]:
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            entry = _entry(line)
            if entry and layer in {None, entry.layer}:
                yield entry

    def tried(self, layer: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for entry in self.entries(layer):
            found[entry.name] = found.get(entry.name, 0) + entry.passed
        return found

    def failing(self, layer: str) -> list[str]:
        latest = {entry.name: entry.passed for entry in self.entries(layer)}
        return [name for name, passed in latest.items() if not passed]

    def turns(self, layer: str, names: Iterable[str]) -> dict[str, int]:
        """These cases in the order in which they are to be tried, each with its turn; cases of one turn are equal.

        Turn 0 have those that did not pass when they were tried last; the others one more than they have passed.
        """
        tried, failing = self.tried(layer), set(self.failing(layer))
        found = {name: 0 if name in failing else 1 + tried.get(name, 0) for name in names}
        return dict(sorted(found.items(), key=itemgetter(1)))

    def _append(self, line: bytes) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, b"\n" + line if is_torn and line else line)
        finally:
            os.close(descriptor)


def _entry(line: bytes) -> Entry | None:
    try:
        return Entry(**json.loads(line))
    except (ValueError, TypeError):
        return None
