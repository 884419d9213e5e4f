"""The format of the journal, a file in which each call is a frame.

A frame has a header and a content. The content is a line of JSON, [time, action], and the body of the call. The header
has the content's length and checksum, and a checksum of these two, so that a damaged length is noticed. So a reader can
distinguish an incomplete last frame from a damaged file. A content never ends in a zero byte, so zeros at the end of
the file belong to no complete frame.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import orjson

_SUMMED: Final = struct.Struct("<II")
_CHECK: Final = struct.Struct("<I")
_HEADER_SIZE: Final = _SUMMED.size + _CHECK.size


class FrameIsDamaged(Exception):
    """The journal is damaged: what begins at byte `start` is neither a complete frame nor an incomplete last frame."""

    def __init__(self, start: int) -> None:
        super().__init__(f"The frame at byte {start} is neither complete nor the beginning of a frame.")
        self.start = start


def frame_of(now: float, action: str, body: bytes) -> bytes:
    """Return the frame of one call, as the journal stores it: time, action and the body of the request."""
    content = orjson.dumps([now, action]) + b"\n" + body
    summed = _SUMMED.pack(len(content), zlib.crc32(content))
    return summed + _CHECK.pack(zlib.crc32(summed)) + content


def read_frames(content: bytes) -> Iterator[tuple[float, str, bytes]]:
    """Yield time, action and body of every complete call.

    If the process or machine ended during a write, the file ends with an incomplete frame: its beginning, perhaps with
    zeros after it. This frame is skipped.

    Raises:
        FrameIsDamaged: the file has a damaged frame.
    """
    start, written = 0, len(content.rstrip(b"\0"))
    while start < written:
        begin = start + _HEADER_SIZE
        if begin > written:
            return
        summed = content[start : start + _SUMMED.size]
        length, checksum = _SUMMED.unpack(summed)
        if content[start + _SUMMED.size : begin] != _CHECK.pack(zlib.crc32(summed)):
            raise FrameIsDamaged(start)
        end = begin + length
        if end > written:
            return
        if zlib.crc32(content[begin:end]) != checksum:
            raise FrameIsDamaged(start)
        head, _, body = content[begin:end].partition(b"\n")
        now, action = orjson.loads(head)
        yield now, action, body
        start = end
