"""Run Valkey (or Redis) for the sandbox. An append-only file keeps its data if it is killed."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import redis

from redrive_service.sandbox.servers import binaries
from redrive_service.sandbox.servers.process import RunningServer, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Valkey:
    """A Valkey server of the sandbox: its folder and its address."""

    folder: Path
    port: int
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """Return the `REDIS_URL` of the sandbox."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def forget(self) -> None:
        """Remove all data of Valkey."""
        shutil.rmtree(self.folder / "valkey", ignore_errors=True)

    def start(self, log: Path, lock: int | None = None) -> RunningServer:
        """Start the server, and return when it answers. `lock` is a file descriptor that the server keeps open.

        Raises:
            SandboxError: the server did not start.
        """
        home = self.folder / "valkey"
        home.mkdir(mode=0o700, exist_ok=True)
        configuration = home / "valkey.conf"  # in a file, because everybody can read the password of a command line
        configuration.touch(mode=0o600)
        configuration.write_text(
            f"bind 127.0.0.1\nport {self.port}\ndir {quoted(home)}\n"
            f'appendonly yes\nsave ""\nrequirepass {self.password}\n'
        )
        server = RunningServer(
            Server(name="Valkey", command=[str(binaries.valkey_program()), str(configuration)], log=log, lock=lock)
        )
        server.await_ready(self._answers)
        return server

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url, socket_timeout=1) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


def quoted(path: Path) -> str:
    """Return a path as a quoted text for valkey.conf. The path may have any bytes."""
    plain = re.sub(rb"[^\w/.+-]", lambda found: b"\\x%02x" % ord(found[0]), os.fsencode(path))
    return f'"{plain.decode()}"'
