"""An HTTP endpoint on loopback that does what the path of each request says, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.reprocessing.web_servers import BLANK, status

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


@dataclass(frozen=True, slots=True)
class Asked:
    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


Script = Callable[["StandIn", Reader, Writer, Asked], Awaitable[None]]


@dataclass
class StandIn:
    """A listening endpoint.

    Attributes:
        scripts: what is done, by path; a path that is a number is answered with that status.
        greet: called with each new connection; True closes it at once.
        alive: connections that are not closed.
    """

    scripts: dict[str, Script]
    greet: Callable[[int], bool] = lambda _: False
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    alive: int = 0
    open: int = 0
    most_open: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self.alive += 1
        number = self.connections
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not self.greet(number):
                asked = await self._read(reader, number)
                self.asked.append(asked)
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                try:
                    await self._do(reader, writer, asked)
                finally:
                    self.open -= 1
                if writer.is_closing():
                    break
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.alive -= 1

    async def _read(self, reader: Reader, number: int) -> Asked:
        head = (await reader.readuntil(BLANK)).decode("latin-1")
        line, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        return Asked(line, headers, await reader.readexactly(int(headers.get("content-length", "0"))), number)

    async def _do(self, reader: Reader, writer: Writer, asked: Asked) -> None:
        path = asked.line.split(" ")[1].partition("?")[0].strip("/")
        if path in self.scripts:
            await self.scripts[path](self, reader, writer, asked)
        else:
            writer.write(status(int(path or "200")))
            await writer.drain()


@contextmanager
def standing_in(
    scripts: dict[str, Script] | None = None, *, greet: Callable[[int], bool] = lambda _: False,
    tls: ssl.SSLContext | None = None,
) -> Iterator[StandIn]:  # fmt: skip
    loop = asyncio.new_event_loop()
    made = StandIn(scripts or {}, greet)
    server = loop.run_until_complete(asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls, backlog=512))
    made.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(_end(made, server), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(made: StandIn, server: asyncio.Server) -> None:
    made.over.set()
    for _ in range(10):  # what was accepted just now still becomes a connection
        await asyncio.sleep(0)
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for _ in range(10):  # what was closed just now still closes its socket
        await asyncio.sleep(0)


def answers(answer: bytes, *, after: float = 0.0, closes: bool = False) -> Script:
    async def script(_made: StandIn, _reader: Reader, writer: Writer, _asked: Asked) -> None:
        await asyncio.sleep(after)
        writer.write(answer)
        await writer.drain()
        if closes:
            writer.close()

    return script


async def hangs(made: StandIn, _reader: Reader, _writer: Writer, _asked: Asked) -> None:
    await made.over.wait()


def pours(first: bytes, piece: bytes, *, every: float = 0.0) -> Script:
    async def script(made: StandIn, _reader: Reader, writer: Writer, _asked: Asked) -> None:
        writer.write(first)
        while not made.over.is_set():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every)

    return script
