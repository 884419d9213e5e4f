"""Write and read snapshots: the complete state of the local SQS in one file, with a checksum."""

import contextlib
import pickle
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from redrive_service.sandbox.sqs.core import LocalSqs

HEADLINE: Final = b"local SQS snapshot 2\n"
_CHECKSUM_FORM: Final = b"%08x\n"
_CHECKSUM_WIDTH: Final = 9
_PIECE: Final = 1024 * 1024  # bytes that are read at once
_UNREADABLE: Final = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError)
_OURS: Final = "redrive_service.sandbox.sqs."
_THEIRS: Final = frozenset({("collections", "deque"), ("random", "Random")})


class SnapshotIsUnusable(Exception):
    """A file is not a complete snapshot. The error says why, and what to do."""


def write_snapshot(core: LocalSqs, file: BinaryIO) -> int:
    """Write the state of `core`, with headline and checksum, into an empty file. Return the file's size in bytes."""
    file.write(HEADLINE + _CHECKSUM_FORM % 0)
    content = _Summing(file)
    pickle.dump(core, content, protocol=pickle.HIGHEST_PROTOCOL)
    size = file.tell()
    file.seek(len(HEADLINE))
    file.write(_CHECKSUM_FORM % content.checksum)
    return size


def read_snapshot(path: Path) -> LocalSqs:
    """Return a `LocalSqs` with the state in a snapshot.

    Raises:
        SnapshotIsUnusable: another program or version wrote the file, or the file was changed.
    """
    core: object = None
    with path.open("rb") as file:
        ours = file.read(len(HEADLINE)) == HEADLINE
        if ours and file.read(_CHECKSUM_WIDTH) != _CHECKSUM_FORM % _checksum_of_rest(file):
            raise SnapshotIsUnusable(
                f"{path} is damaged: its content does not fit its checksum. Put a copy of it back, or give the server "
                "another folder.",
            )
        if ours:
            file.seek(len(HEADLINE) + _CHECKSUM_WIDTH)
            with contextlib.suppress(*_UNREADABLE):
                core = _Unpickler(file).load()
    if not isinstance(core, LocalSqs):
        raise SnapshotIsUnusable(
            f"{path} was not written by this version of the local SQS. Give the server another folder, or delete "
            "this one if its queues are not needed.",
        )
    return core


def _checksum_of_rest(file: BinaryIO) -> int:
    checksum = 0
    while piece := file.read(_PIECE):
        checksum = zlib.crc32(piece, checksum)
    return checksum


class _Summing:
    """An object like a file: it writes to another file, and calculates the checksum of the written bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.checksum = 0

    def write(self, data: bytes) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)


class _Unpickler(pickle.Unpickler):
    """Loads only classes that a snapshot can contain, so that a file from elsewhere cannot run code."""

    def find_class(self, module: str, name: str) -> object:
        if module.startswith(_OURS) or (module, name) in _THEIRS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no class of a snapshot.")
