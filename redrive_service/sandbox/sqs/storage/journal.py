"""The journal of calls, with which the state of the local SQS survives kill -9.

The core is deterministic, so the calls that changed something, with their times, determine the state. Each such call is
written to the journal before it is answered. When the server starts, all calls in the journal are executed again. From
time to time, a snapshot (a file with the whole state) replaces the journal, to keep the journal short.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import read_parameters
from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.storage.frames import FrameIsDamaged, frame_of, read_frames
from redrive_service.sandbox.sqs.storage.snapshot import SnapshotIsUnusable, read_snapshot, write_snapshot

_SMALLEST_BOUND: Final = 64 * 1024 * 1024  # bytes of a journal, below which it is not replaced by a snapshot
_FILE: Final = re.compile(r"(snapshot|journal)-(\d{8})")


class JournalIsUnusable(Exception):
    """The data folder cannot be used. The error says why, and what to do."""


class Journal:
    """The data folder of one server, with snapshots and journals.

    Files are numbered: snapshot N is the state before the calls in journal N. The empty journal N is created first,
    then the complete snapshot N. So the snapshot with the highest number is complete and has a journal. Journals with
    higher numbers are empty. If a folder has other files, it is refused.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._file = -1
        self._size = 0
        self._bound = _SMALLEST_BOUND
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            sentence = f"Another local SQS is using {folder}. Stop the other SQS, or name another folder."
            raise JournalIsUnusable(sentence) from None

    def recover(self, fresh: Callable[[], LocalSqs]) -> LocalSqs:
        """Return a `LocalSqs` with the last stored state. If the folder is empty, return a new one, made by `fresh`.

        Raises:
            JournalIsUnusable: a file is missing or damaged. (An incomplete last write is no damage.)
        """
        numbers = self._numbers("snapshot")
        self._number = max(numbers, default=0)
        self._check_later_journals()
        core = self._restore() if numbers else fresh()
        self.start_over(core)
        return core

    def keep(self, now: float, action: str, body: bytes) -> None:
        """Append one call to the journal, with a single write to the file. With an empty action, only store the time.

        Raises:
            JournalIsUnusable: the file cannot be written, for example because the disk is full.
        """
        record = frame_of(now, action, body)
        try:
            written = os.write(self._file, record)
        except OSError as error:
            raise JournalIsUnusable(f"The journal in {self._folder} cannot be written: {error.strerror}.") from error
        if written < len(record):
            raise JournalIsUnusable(f"The journal in {self._folder} cannot be written: the disk is full.")
        self._size += written

    def has_grown(self) -> bool:
        """Return whether the journal is longer than 64 MiB, and longer than twice the last snapshot."""
        return self._size > self._bound

    def start_over(self, core: LocalSqs) -> None:
        """Write the state of `core` as a new snapshot, and begin an empty journal."""
        number = self._number + 1
        path = self._path("snapshot", number)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            self._bound = max(_SMALLEST_BOUND, 2 * write_snapshot(core, file))
            file.flush()
            os.fsync(file.fileno())
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        journal = os.open(self._path("journal", number), flags, 0o600)
        unfinished.rename(path)
        if self._file >= 0:
            os.close(self._file)
        self._number, self._file, self._size = number, journal, 0
        for kind in ("snapshot", "journal"):
            for old in self._numbers(kind):
                if old < number:
                    self._path(kind, old).unlink()

    def close(self) -> None:
        """Close the journal, and release the folder for another server."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._lock.close()

    # -- files

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:08d}"

    def _numbers(self, kind: str) -> list[int]:
        matches = [_FILE.fullmatch(path.name) for path in self._folder.iterdir()]
        return sorted(int(match[2]) for match in matches if match and match[1] == kind)

    def _check_later_journals(self) -> None:
        """Raise JournalIsUnusable if a journal without a snapshot has calls: somebody removed its snapshot."""
        for number in self._numbers("journal"):
            path = self._path("journal", number)
            begun = number == self._number + 1 and not path.stat().st_size
            if number > self._number and not begun:
                raise JournalIsUnusable(
                    f"{path} has no snapshot: {self._path('snapshot', number).name} is missing. Put it back, or give "
                    "the server another folder.",
                )

    def _restore(self) -> LocalSqs:
        path = self._path("journal", self._number)
        try:
            core = read_snapshot(self._path("snapshot", self._number))
        except SnapshotIsUnusable as trouble:
            raise JournalIsUnusable(str(trouble)) from None
        if not path.exists():
            raise JournalIsUnusable(
                f"{path} is missing, and with it the calls since the snapshot beside it. Put it back, give the server "
                "another folder, or make an empty file of that name to go on without these calls.",
            )
        for now, action, body in _calls_in(path):
            _do_again(core, now, action, body)
        return core


def _calls_in(path: Path) -> Iterator[tuple[float, str, bytes]]:
    try:
        yield from read_frames(path.read_bytes())
    except FrameIsDamaged as damage:
        raise JournalIsUnusable(
            f"{path} is damaged at byte {damage.start}. Put a copy of it back, give the server another folder, or cut "
            f"the file off there to go on with the calls before: truncate -s {damage.start} {path}",
        ) from None


def _do_again(core: LocalSqs, now: float, action: str, body: bytes) -> None:
    if not action:
        core.advance(now)
        return
    with contextlib.suppress(SqsError):  # a refused call is refused again
        core.handle(action, read_parameters(body), now=now)
