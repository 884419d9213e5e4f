"""A Valkey for this folder's tests, which they stop and flush."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from redrive_service.sandbox.servers.process import RunningServer, free_port
from redrive_service.sandbox.servers.valkey import Valkey


@dataclass
class Server:
    valkey: Valkey
    log: Path
    running: RunningServer | None = None

    def start(self) -> None:
        self.running = self.valkey.start(self.log)

    def stop(self) -> None:
        if self.running:
            self.running.stop()
            self.running = None

    @property
    def url(self) -> str:
        return self.valkey.url

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("rates")
    server = Server(Valkey(folder=folder, port=free_port(), password="secret"), folder / "valkey.log")
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(one_server: Server) -> Server:
    if one_server.running is None:
        one_server.start()
    with one_server.client() as client:
        client.flushall()
    return one_server
