"""The journal: what was answered survives kill -9.

The core is deterministic, so the calls that changed something, each with its time, are the state: every one is written
before it is answered, and all are done again on start. A snapshot taken now and then keeps that short.
"""

import contextlib
import fcntl
import io
import os
import pickle
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import orjson

from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.errors import SqsError
from redrive_service.sandbox.sqs.exchange import read_parameters

_FRAME: Final = struct.Struct("<II")
_HEADLINE: Final = b"local SQS snapshot 1\n"
_SMALLEST_BOUND: Final = 64 * 1024 * 1024
_FILE: Final = re.compile(r"(snapshot|journal)-(\d{8})")
_UNREADABLE: Final = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError)
_OURS: Final = "redrive_service.sandbox.sqs."
_THEIRS: Final = frozenset({("collections", "deque"), ("random", "Random")})


class JournalIsUnusable(Exception):
    """The data folder cannot be used; the sentence says why and what to do."""


class Journal:
    """The data folder of one server.

    Files are numbered: snapshot N is the state before the calls in journal N. A snapshot only gets its name when it is
    whole, so the highest number is always good; a record that was being written when the process died is dropped.
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
            sentence = f"Another local SQS is using {folder}. Stop that one, or give this one a folder of its own."
            raise JournalIsUnusable(sentence) from None

    def recover(self, fresh: Callable[[], LocalSqs]) -> LocalSqs:
        """The state that was last kept, or a fresh one in an empty folder."""
        numbers = [number for kind, number in self._files() if kind == "snapshot"]
        if not numbers and any(kind == "journal" for kind, _ in self._files()):
            raise JournalIsUnusable(f"{self._folder} has a journal but no snapshot. Give the server another folder.")
        core = fresh()
        if numbers:
            self._number = max(numbers)
            core = self._load(self._path("snapshot"))
            for now, action, body in self._records(self._path("journal")):
                _do_again(core, now, action, body)
        self.start_over(core)
        return core

    def keep(self, now: float, action: str, body: bytes) -> None:
        """Writes one call, with one write; without an action only the time has passed."""
        content = orjson.dumps([now, action]) + b"\n" + body
        record = _FRAME.pack(len(content), zlib.crc32(content)) + content
        try:
            written = os.write(self._file, record)
        except OSError as error:
            raise JournalIsUnusable(f"The journal in {self._folder} cannot be written: {error.strerror}.") from error
        if written < len(record):
            raise JournalIsUnusable(f"The journal in {self._folder} cannot be written: the disk is full.")
        self._size += written

    def has_grown(self) -> bool:
        """Whether doing everything again would take too long by now."""
        return self._size > self._bound

    def start_over(self, core: LocalSqs) -> None:
        """Writes the state as a snapshot and begins an empty journal."""
        self._number += 1
        path = self._path("snapshot")
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            file.write(_HEADLINE)
            pickle.dump(core, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()
            os.fsync(file.fileno())
            self._bound = max(_SMALLEST_BOUND, 2 * file.tell())
        unfinished.rename(path)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self._path("journal"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        for kind, number in self._files():
            if number < self._number:
                (self._folder / f"{kind}-{number:08d}").unlink()

    def close(self) -> None:
        """Lets another server use the folder."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._lock.close()

    # -- files

    def _path(self, kind: str) -> Path:
        return self._folder / f"{kind}-{self._number:08d}"

    def _files(self) -> list[tuple[str, int]]:
        matches = [_FILE.fullmatch(path.name) for path in self._folder.iterdir()]
        return sorted((match[1], int(match[2])) for match in matches if match)

    def _load(self, path: Path) -> LocalSqs:
        core: object = None
        with path.open("rb") as file, contextlib.suppress(*_UNREADABLE):
            if file.read(len(_HEADLINE)) == _HEADLINE:
                core = _Unpickler(file).load()
        if not isinstance(core, LocalSqs):
            raise JournalIsUnusable(
                f"{path} was not written by this version of the local SQS. Give the server another folder, or delete "
                "this one if its queues are not needed.",
            )
        return core

    def _records(self, path: Path) -> Iterator[tuple[float, str, bytes]]:
        content = path.read_bytes() if path.exists() else b""
        start = 0
        while start + _FRAME.size <= len(content):
            length, checksum = _FRAME.unpack_from(content, start)
            end = start + _FRAME.size + length
            record = content[start + _FRAME.size : end]
            if zlib.crc32(record) != checksum or end > len(content):
                if end >= len(content):
                    return  # torn: the process died while it wrote this, so it was never answered
                raise JournalIsUnusable(f"{path} is damaged at byte {start}. Give the server another folder.")
            head, _, body = record.partition(b"\n")
            now, action = orjson.loads(head)
            yield now, action, body
            start = end


def _do_again(core: LocalSqs, now: float, action: str, body: bytes) -> None:
    if not action:
        core.advance(now)
        return
    with contextlib.suppress(SqsError):  # what was refused the first time is refused again
        core.handle(action, read_parameters(body), now=now)


class _Unpickler(pickle.Unpickler):
    """Makes only what a snapshot is made of, so that a file from elsewhere cannot run anything."""

    def find_class(self, module: str, name: str) -> object:
        if module.startswith(_OURS) or (module, name) in _THEIRS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no business in a snapshot.")


def snapshot_of(core: LocalSqs) -> bytes:
    """The state as bytes: equal states have equal bytes."""
    buffer = io.BytesIO()
    pickle.dump(core, buffer, protocol=pickle.HIGHEST_PROTOCOL)
    return buffer.getvalue()
