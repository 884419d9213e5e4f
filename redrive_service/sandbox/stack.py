"""The whole stack in one folder: its lock, its secrets, its ports, its three servers."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from redrive_service.sandbox import privilege
from redrive_service.sandbox.errors import SandboxIsRunning
from redrive_service.sandbox.local_queues import CREDENTIALS, LocalQueues
from redrive_service.sandbox.postgres import Postgres
from redrive_service.sandbox.servers import RunningServer, accepts_connections, free_port
from redrive_service.sandbox.valkey import Valkey

SERVERS = ("postgres", "redis", "sqs")
FOLDER_FREE_WITHIN = 4.0  # seconds: twice what the servers of a killed sandbox need to end


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports to listen on; 0 means the one used last time, else any free one."""

    postgres: int = 0
    redis: int = 0
    sqs: int = 0


class Stack:
    """PostgreSQL, Valkey and the local SQS, alive inside a `with` block and for no longer than this process.

    Data stay in the folder between starts, so do secrets and ports: an environment exported once stays right.

    Raises:
        SandboxIsRunning: another process has the folder.
        SandboxError: a server is not to be found, or does not start.
    """

    def __init__(self, folder: Path, *, ports: Ports | None = None, fresh: bool = False) -> None:
        self.folder = folder.absolute()
        self.servers: dict[str, RunningServer] = {}
        self._chosen = ports or Ports()
        self._fresh = fresh
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as unwinding:
            lock = take(self.folder / "lock")
            unwinding.callback(os.close, lock)
            self._settle()
            if self._fresh:
                for server in (self.postgres, self.valkey, self.queues):
                    server.forget()
            for name, start in self._starts().items():
                self.servers[name] = start(self.folder / f"{name}.log", lock)
                unwinding.callback(self.servers[name].stop)
            self.queue_urls = self.queues.make_own_queues()
            self._exit = unwinding.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def environment(self) -> dict[str, str]:
        """The variables under which the service uses this stack."""
        return {
            "REDRIVE_MODE": "sandbox",
            "SECRET_KEY": self._secrets["django"],
            "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1]",
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "AWS_ENDPOINT_URL_SQS": self.queues.endpoint,
            **CREDENTIALS,
            **{f"{name.upper().replace('-', '_')}_QUEUE_URL": url for name, url in self.queue_urls.items()},
        }

    def ended(self) -> str | None:
        """The name of a server that has ended by itself, if any."""
        return next((name for name, server in self.servers.items() if server.has_ended()), None)

    def _starts(self) -> dict[str, Callable[[Path, int], RunningServer]]:
        return dict(zip(SERVERS, (self.postgres.start, self.valkey.start, self.queues.start), strict=True))

    def _settle(self) -> None:
        """Read, or choose and remember, what must be the same at the next start."""
        file, unfinished = self.folder / "settings.json", self.folder / "settings.json.unfinished"
        kept = json.loads(file.read_text()) if file.exists() else {"ports": {}, "secrets": {}}
        self._secrets = {name: kept["secrets"].get(name) or secrets.token_hex(32) for name in ("data", "django")}
        ports = {name: getattr(self._chosen, name) or self._port_again(kept["ports"].get(name)) for name in SERVERS}
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps({"ports": ports, "secrets": self._secrets}))
        unfinished.replace(file)
        password, identity = self._secrets["data"], privilege.unprivileged_identity()
        self.postgres = Postgres(folder=self.folder, port=ports["postgres"], password=password, identity=identity)
        self.valkey = Valkey(folder=self.folder, port=ports["redis"], password=password)
        self.queues = LocalQueues(folder=self.folder, port=ports["sqs"])

    @staticmethod
    def _port_again(last: int | None) -> int:
        return last if last is not None and not accepts_connections(last) else free_port()


def take(path: Path) -> int:
    """Lock the file and return its descriptor.

    The guards hold it too: a sandbox that was killed keeps its folder for the second its servers need to end.

    Raises:
        SandboxIsRunning: somebody holds it, and goes on holding it.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + FOLDER_FREE_WITHIN
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            holder = os.pread(lock, 32, 0).decode() or "unknown"
            os.close(lock)
            raise SandboxIsRunning(
                f"A sandbox runs in {path.parent} already (process {holder}). Stop it, or name another --folder."
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        return lock
