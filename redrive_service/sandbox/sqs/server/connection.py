"""Read the requests of a client's HTTP/1.1 connection, and write the answers, one request after another."""

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast

from redrive_service.sandbox.sqs.server.http_head import (
    LARGEST_BODY,
    TOO_LARGE,
    Head,
    HttpRequest,
    read_head,
    unreadable,
)

LARGEST_HEAD: Final = 64 * 1024  # bytes of a request line with its headers
_HEAD_END: Final = b"\r\n\r\n"
_REASONS: Final = {status.value: status.phrase.encode() for status in HTTPStatus}
# Bytes of the read buffer. Without it, asyncio would allocate 256 KiB for every read.
_INBOX: Final = 64 * 1024
# If the server closed a connection while the client still sends, the client could lose the answer. So after the last
# answer, the server reads on, up to this many bytes, for this many seconds.
LARGEST_REST: Final = LARGEST_BODY
LONGEST_REST: Final = 5.0  # seconds
_PEER_LEFT: Final[int] = getattr(select, "POLLRDHUP", select.POLLHUP)  # macOS sets POLLHUP


Serve = Callable[["Connection", HttpRequest], None]


class Connection(asyncio.BufferedProtocol):
    """A client's connection. The next request is read only when `serve` has called `answer` for the request before."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._inbox = bytearray(_INBOX)
        self._view = memoryview(self._inbox)
        self._buffer = bytearray()
        self._head: Head | None = None  # head of the request that is being read or served
        self._missing = 0
        self._busy = False
        self._looping = False
        self._full = False
        self._stuffed = False
        self._rest: int | None = None  # bytes to read after the last answer; None: before the last answer
        self._deadline: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.gone = False

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102 - see asyncio.Protocol
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, D102 - see asyncio.Protocol
        self.gone = True
        self._buffer.clear()
        if self._deadline is not None:
            self._deadline.cancel()

    def pause_writing(self) -> None:  # noqa: D102 - see asyncio.Protocol
        self._full = True

    def resume_writing(self) -> None:  # noqa: D102 - see asyncio.Protocol
        self._full = False
        self._work()

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002, D102 - see asyncio.BufferedProtocol
        return self._inbox

    def buffer_updated(self, nbytes: int) -> None:  # noqa: D102 - see asyncio.BufferedProtocol
        self.take(bytes(self._view[:nbytes]))

    def take(self, data: bytes | bytearray) -> None:
        """Process bytes from the client: serve each complete request, and keep the bytes of an incomplete request."""
        if self._rest is not None:
            self._rest -= len(data)
            if self._rest < 0 and self._transport is not None:
                self._transport.close()
            return
        if self._head is None and not self._buffer and self._serve_whole(data):
            return
        self._buffer += data
        self._work()
        if len(self._buffer) > LARGEST_BODY + LARGEST_HEAD and self._transport is not None:
            self._stuffed = True
            self._transport.pause_reading()

    # -- the server's side

    def answer(self, status: int, body: bytes, headers: bytes = b"") -> None:
        """Answer the current request. `headers` has additional header lines, each with its line end."""
        transport = self._transport
        if self.gone or transport is None or not self._busy:
            return
        keep_alive = self._head is not None and self._head.keep_alive
        wants_body = self._head is None or self._head.method != b"HEAD"
        transport.write(
            b"HTTP/1.1 %d %b\r\n%bcontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n%b\r\n%b"
            % (
                status,
                _REASONS.get(status, b"Error"),
                headers,
                len(body),
                b"" if keep_alive else b"connection: close\r\n",
                body if wants_body else b"",
            ),
        )
        self._head = None
        self._busy = False
        if self._stuffed:
            self._stuffed = False
            transport.resume_reading()
        if not keep_alive:
            self._end_connection(transport)
        elif not self._looping:
            self._work()

    def drop(self) -> None:
        """Close the connection without an answer."""
        if self._transport is not None:
            self._transport.abort()

    def peer_has_left(self) -> bool:
        """Return whether the client has closed the connection, even if asyncio has not noticed yet."""
        if self.gone or self._transport is None or self._transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), _PEER_LEFT)
        return bool(poll.poll(0))

    def _end_connection(self, transport: asyncio.Transport) -> None:
        """Send nothing more. Close the connection when the client closes it, after 8 MiB from the client, or after 5 s.

        If the server closed the connection while the client still sends, the client could lose the answer.
        """
        self._rest = LARGEST_REST
        self._buffer.clear()
        transport.write_eof()
        self._deadline = asyncio.get_running_loop().call_later(LONGEST_REST, transport.abort)

    # -- parsing

    def _serve_whole(self, data: bytes | bytearray) -> bool:
        """If `data` is exactly one complete request, which is usual, serve the request and return True, else False."""
        end = data.find(_HEAD_END)
        if self._full or self.gone or not 0 <= end <= LARGEST_HEAD:
            return False
        head = read_head(bytes(data[:end]))
        start = end + len(_HEAD_END)
        if head.length != len(data) - start or head.status == TOO_LARGE or b"expect" in head.headers:
            return False
        self._head = head
        self._busy = self._looping = True
        try:
            self._serve(self, HttpRequest(head, bytes(data[start:])))
        finally:
            self._looping = False
        return True

    def _work(self) -> None:
        self._looping = True
        try:
            while self._buffer and not self._busy and not self._full and not self.gone:
                request = self._next_request()
                if request is None:
                    break
                self._busy = True
                self._serve(self, request)
        finally:
            self._looping = False

    def _next_request(self) -> HttpRequest | None:
        """Return the next request in the buffer, or None if it has not arrived completely."""
        head = self._head
        if head is None:
            head = self._head = self._next_head()
            if head is None:
                return None
            self._missing = head.length
            if b"expect" in head.headers:
                self._send_continue(head)
        if head.status == TOO_LARGE:
            return self._skip_body(head)
        if len(self._buffer) < head.length:
            return None
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        return HttpRequest(head, body)

    def _next_head(self) -> Head | None:
        buffer = self._buffer
        end = buffer.find(_HEAD_END)
        if end < 0 and len(buffer) <= LARGEST_HEAD:
            return None
        if end < 0 or end > LARGEST_HEAD:
            return unreadable("The request's head is too large.", 431)
        head = read_head(bytes(buffer[:end]))
        del buffer[: end + len(_HEAD_END)]
        return head

    def _skip_body(self, head: Head) -> HttpRequest | None:
        """Return the request without its body, which is too large, or None if the body has not arrived completely.

        The body is read and dropped, so that the client gets an error and can use the connection again.
        """
        skipped = min(len(self._buffer), self._missing)
        self._missing -= skipped
        del self._buffer[:skipped]
        return None if self._missing else HttpRequest(head, b"")

    def _send_continue(self, head: Head) -> None:
        expected = head.headers[b"expect"].lower() == b"100-continue"
        if expected and len(self._buffer) < head.length and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
