"""What was proved so far: one line of JSON an entry, so that a kill costs one entry and two may write at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
    """A file of entries. A torn last line, which a kill may leave, is no entry."""

    def __init__(self, file: Path = HOME / "ledger.jsonl") -> None:
        self._file = file
        self.noted = 0  #: by this process

    def note(self, layer: str, name: str, *, passed: bool, why: str = "", **figures: float) -> None:
        """Add an entry, in one write."""
        self.noted += 1
        self._file.parent.mkdir(parents=True, exist_ok=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")  # noqa: TID251  a diary
        told = {"layer": layer, "name": name, "passed": passed, "why": why, "figures": figures, "at": at}
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, b"\n" + json.dumps(told).encode() + b"\n")  # whatever a torn line before it
        finally:
            os.close(descriptor)

    def entries(self, layer: str | None = None) -> Iterator[Entry]:
        """All entries, or those of one layer, oldest first."""
        if not self._file.exists():
            return
        for line in self._file.read_bytes().splitlines():
            try:
                entry = Entry(**json.loads(line))
            except (ValueError, TypeError):
                continue
            if layer in {None, entry.layer}:
                yield entry

    def tried(self, layer: str) -> dict[str, int]:
        """How often each case of a layer passed."""
        found: dict[str, int] = {}
        for entry in self.entries(layer):
            found[entry.name] = found.get(entry.name, 0) + entry.passed
        return found

    def failing(self, layer: str) -> list[str]:
        """Those cases of a layer that did not pass when they were tried last."""
        latest = {entry.name: entry.passed for entry in self.entries(layer)}
        return [name for name, passed in latest.items() if not passed]
