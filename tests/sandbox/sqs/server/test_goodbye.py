"""The end of a connection after an answer that was its last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from redrive_service.sandbox.sqs.server.connection import LARGEST_HEAD, LARGEST_REST, Connection
from redrive_service.sandbox.sqs.server.http_head import LARGEST_BODY, HttpRequest

GARBAGE = b"GARBAGE\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n"


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.done: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.done.append("write_eof")

    def pause_reading(self) -> None:
        self.done.append("pause_reading")

    def resume_reading(self) -> None:
        self.done.append("resume_reading")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def answer(connection: Connection, request: HttpRequest) -> None:
    connection.answer(request.head.status, b"")


async def talk(wire: Wire, *pieces: bytes) -> Connection:
    connection = Connection(answer)
    connection.connection_made(wire)
    for piece in pieces:
        connection.take(piece)
    return connection


@pytest.mark.parametrize("rest", [GARBAGE, LAST])
def test_nothing_is_answered_after_the_last_answer(loop: asyncio.AbstractEventLoop, rest: bytes) -> None:
    for pieces in ([GARBAGE + rest], [GARBAGE, rest]):
        wire = Wire()
        loop.run_until_complete(talk(wire, *pieces))
        assert (wire.written.count(b"HTTP/1.1 "), wire.done) == (1, ["write_eof"])


def test_a_whole_head_that_is_too_large_is_refused_as_one_that_has_no_end(loop: asyncio.AbstractEventLoop) -> None:
    wire = Wire()
    loop.run_until_complete(talk(wire, b"GET / HTTP/1.1\r\nX: " + b"x" * LARGEST_HEAD + b"\r\n\r\n"))
    assert wire.written.startswith(b"HTTP/1.1 431 ")


def test_the_rest_may_have_its_full_size_and_no_byte_more(loop: asyncio.AbstractEventLoop) -> None:
    wire = Wire()
    connection = loop.run_until_complete(talk(wire, GARBAGE, b"x" * (LARGEST_REST - 1), b"x"))
    assert wire.done == ["write_eof"]
    connection.take(b"x")
    assert wire.done == ["write_eof", "close"]


def test_a_client_that_was_not_read_is_read_again_to_its_end(loop: asyncio.AbstractEventLoop) -> None:
    async def late() -> list[str]:
        wire, held = Wire(), list[Connection]()
        connection = Connection(lambda connection, _: held.append(connection))
        connection.connection_made(wire)
        connection.take(LAST)
        connection.take(b"x" * (LARGEST_BODY + LARGEST_HEAD + 1))
        held[0].answer(200, b"")
        return wire.done

    assert loop.run_until_complete(late()) == ["pause_reading", "resume_reading", "write_eof"]


@pytest.mark.parametrize(("leaves", "end"), [(False, ["write_eof", "abort"]), (True, ["write_eof"])])
def test_only_who_has_not_left_is_cut_off(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch, leaves: bool, end: list[str]
) -> None:
    monkeypatch.setattr("redrive_service.sandbox.sqs.server.connection.LONGEST_REST", 0.001)

    async def outlast() -> list[str]:
        wire, later = Wire(), asyncio.Event()
        connection = await talk(wire, GARBAGE)
        if leaves:
            connection.connection_lost(None)
        asyncio.get_running_loop().call_later(0.002, later.set)  # timers fire in the order of their times
        await later.wait()
        return wire.done

    assert loop.run_until_complete(outlast()) == end
