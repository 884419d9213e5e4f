"""An HTTP endpoint for benchmarks: answers every request after a pause (longer for one key), and records requests.

Run it as `endpoint.py PORT PAUSE HANGING`. Letters are JSON with `key` and `n`; GET returns the record: a list of
[key, n, begun, ended] in order of arrival, in seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

HANGS = 30.0  # seconds that letters of the hanging key wait
_OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Endpoint(asyncio.Protocol):
    """One connection to the endpoint; its requests come one after another."""

    def __init__(self, record: list[list[object]], pause: float, hanging: str) -> None:
        self._record, self._pause, self._hanging = record, pause, hanging
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the connection (see asyncio.Protocol)."""
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]  # TCP's is one

    def data_received(self, data: bytes) -> None:
        """Read requests, and answer each after its pause (see asyncio.Protocol)."""
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = next((int(one[15:]) for one in head.lower().split(b"\r\n") if one.startswith(b"content-length:")), 0)
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        if head.startswith(b"GET"):
            body = json.dumps(self._record).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            return
        letter = json.loads(rest[:length])
        line: list[object] = [letter["key"], letter["n"], time.monotonic(), None]
        self._record.append(line)
        pause = HANGS if letter["key"] == self._hanging else self._pause
        asyncio.get_running_loop().call_later(pause, self._answer, line)

    def _answer(self, line: list[object]) -> None:
        line[3] = time.monotonic()
        if not self._transport.is_closing():
            self._transport.write(_OK)


async def serve(port: int, pause: float, hanging: str) -> None:
    """Serve until the process is ended. `pause`: seconds until an answer. `hanging`: key whose letters wait 30 s."""
    record: list[list[object]] = []
    server = await asyncio.get_running_loop().create_server(
        partial(Endpoint, record, pause, hanging), "127.0.0.1", port, backlog=2_048
    )
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))
