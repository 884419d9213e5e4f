"""What was proved so far: one line of JSON an entry, so that two may write at once.

A kill costs what was being tried: one case, or with payloads the lot that travels together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tests.proof.names import LAYERS, NUMBERED, is_number

HOME: Final = Path(__file__).resolve().parents[2] / ".proof"
#: Nothing is counted that often.
_MOST: Final = 1e15


class LedgerIsShut(Exception):
    """What is proved cannot be written down, or not be read: what, where, and what to do, in a sentence."""


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
    """A file of entries. What is none is passed over: a torn line, which a kill may leave, or one of other types.

    So is a layer that there is not, and a figure that nothing can be added to.

    Raises:
        LedgerIsShut: from whatever writes or reads, where the file or its folder does not let it.
    """

    def __init__(self, file: Path = HOME / "ledger.jsonl") -> None:
        self._file = file
        self.noted = 0  #: by this process

    def open_up(self) -> None:
        """See to it that entries can be written and read, as it will be done; nothing is written yet."""
        self._append(b"")
        list(self.entries())

    def note(self, layer: str, name: str, *, passed: bool, why: str = "", **figures: float) -> None:
        self.noted += 1
        at = datetime.now(UTC).isoformat(timespec="seconds")  # noqa: TID251  a diary
        told = {"layer": layer, "name": name, "passed": passed, "why": why, "figures": figures, "at": at}
        self._append(json.dumps(told).encode() + b"\n")

    def entries(self, layer: str | None = None) -> Iterator[Entry]:
        with _told(self._file, "read"):
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
        with _told(self._file, "written"):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                os.write(descriptor, b"\n" + line if is_torn and line else line)
            finally:
                os.close(descriptor)


@contextmanager
def _told(file: Path, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        at = error.filename or file
        if isinstance(error, PermissionError) and str(at) == str(file.parent):  # it is not there yet
            cure = f"let this user write to {file.parent.parent}"
        elif isinstance(error, PermissionError) and any(map(_is_of_another, (file.parent, file))):
            cure = f"it belongs to another user; as root: chown -R {os.geteuid()} {file.parent}"
        elif isinstance(error, PermissionError):
            cure = f"let this user write and read it and its folder (chmod u+rwX {file.parent} {file})"
        elif isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError):
            cure = "move what is there away: the ledger is a file in a folder of its own"
        else:
            cure = "see to that"
        raise LedgerIsShut(
            f"The ledger of what is proved, {file}, cannot be {done}: {at}: {error.strerror}; {cure}."
        ) from error


def _is_of_another(path: Path) -> bool:
    try:
        return path.stat().st_uid != os.geteuid()
    except OSError:  # it is not there, or its folder is shut, which is looked at itself
        return False


def _entry(line: bytes) -> Entry | None:
    try:
        entry = Entry(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    said: Any = entry  # a line may say anything
    texts = all(isinstance(one, str) for one in (said.layer, said.name, said.why, said.at))
    if not (texts and isinstance(said.passed, bool) and isinstance(said.figures, dict)):
        return None
    if not all(isinstance(one, int | float) and abs(one) <= _MOST for one in said.figures.values()):  # NaN is not
        return None
    return entry if entry.layer in LAYERS and (is_number(entry.name) or entry.layer not in NUMBERED) else None
