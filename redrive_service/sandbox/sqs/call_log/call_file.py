"""A file of the call log, with one line per call. Lines are found by the call's number."""

import os
from array import array
from collections.abc import Iterator
from typing import BinaryIO, Final

# The position of every 128th line is kept in memory: 64 KiB for a million lines.
_EVERY: Final = 128


class CallLogIsUnusable(Exception):
    """The call log cannot be written. The server then stops, because it must log every call."""


class CallFile:
    """The calls from number `first` on, one per line. They are appended to what the file contained before."""

    def __init__(self, file: BinaryIO, first: int) -> None:
        self._file = file
        self._end = self.size_before = file.seek(0, os.SEEK_END)
        self._places = array("Q")
        self.first = first
        self.count = 0

    @property
    def size(self) -> int:
        """Return the number of bytes that this object has written."""
        return self._end - self.size_before

    def append(self, line: bytes) -> None:
        """Write the line of the next call. Raises CallLogIsUnusable if the line cannot be written completely."""
        if self.count % _EVERY == 0:
            self._places.append(self._end)
        try:
            written = self._file.write(line)
        except OSError as error:
            raise CallLogIsUnusable(f"The call log cannot be written: {error.strerror}.") from error
        if written < len(line):
            raise CallLogIsUnusable("The call log cannot be written: the disk is full.")
        self._end += written
        self.count += 1

    def lines(self, since: int) -> Iterator[bytes]:
        """Yield the lines of the calls numbered `since` or later, without line ends. Earlier lines are not read.

        Raises:
            CallLogIsUnusable: buffered lines, which are written to the file first, cannot be written.
        """
        try:
            self._file.flush()
        except OSError as error:
            raise CallLogIsUnusable(f"The call log cannot be written: {error.strerror}.") from error
        block, skipped = divmod(max(0, since - self.first), _EVERY)
        ends = [*self._places[block + 1 :], self._end]
        for start, end in zip(self._places[block:], ends, strict=False):
            yield from os.pread(self._file.fileno(), end - start, start).splitlines()[skipped:]
            skipped = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
