"""The servers of a sandbox, with their data in one folder: PostgreSQL, Valkey and the local SQS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.folder import Ports, SavedSettings, lock_folder
from redrive_service.sandbox.servers import binaries, privilege
from redrive_service.sandbox.servers.local_sqs import LocalQueues
from redrive_service.sandbox.servers.postgres import Postgres
from redrive_service.sandbox.servers.process import RunningServer, guarded
from redrive_service.sandbox.servers.valkey import Valkey

LOOPBACK = "127.0.0.1"


class Part(Protocol):
    """A server of the sandbox, as `Stack` uses it: it can be started, and its data can be removed."""

    def start(self, log: Path, lock: int | None = None) -> RunningServer:
        """Start the server, and return when it can be used. `lock` is a file descriptor that the server keeps open."""

    def forget(self) -> None:
        """Remove all data of the server."""


def variables_of_queues(urls: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables with the URLs of the service's own queues, such as REDRIVE_CONTROL_QUEUE_URL."""
    return {f"{name.upper().replace('-', '_')}_QUEUE_URL": url for name, url in urls.items()}


class Stack:
    """PostgreSQL, Valkey and the local SQS. They run inside a `with` block, and end with this process at the latest.

    Raises:
        SandboxIsRunning: another process uses the folder.
        SandboxError: a server is not found or does not start, or a file of the folder cannot be used.
    """

    def __init__(  # noqa: PLR0913  # each is an option of a sandbox
        self,
        folder: Path,
        *,
        ports: Ports | None = None,
        fresh: bool = False,
        queues_only: bool = False,
        sqs_host: str = LOOPBACK,
        sqs_in_memory: bool = False,
    ) -> None:
        self.folder = folder.absolute()
        self.servers: dict[str, RunningServer] = {}
        self._ports = ports or Ports()
        self._fresh = fresh
        self._queues_only = queues_only
        self._sqs_host = sqs_host
        self._sqs_in_memory = sqs_in_memory
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except OSError as error:
            raise SandboxError(
                f"{error.filename or self.folder} cannot be used ({error.strerror}). "
                "Put it right, or name another --folder."
            ) from error
        return self

    def _start(self) -> None:
        with ExitStack() as unwinding:
            lock = lock_folder(self.folder)
            unwinding.callback(os.close, lock)
            for name, part in self._make_servers().items():
                if self._fresh:
                    part.forget()
                self.servers[name] = part.start(self.folder / f"{name}.log", lock)
                unwinding.callback(self.servers[name].stop)
            self.queue_urls = self.queues.make_own_queues()
            self._exit = unwinding.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which the service uses this stack."""
        queues = {**self.queues.environment(), **variables_of_queues(self.queue_urls)}
        if self._queues_only:
            return queues
        return {
            "REDRIVE_MODE": "sandbox",
            "SECRET_KEY": self.secrets.django,
            "ALLOWED_HOSTS": f"localhost,{LOOPBACK},[::1]",
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            **queues,
        }

    def ended(self) -> RunningServer | None:
        """Return a server that has ended by itself, or None if all servers run."""
        return next((server for server in self.servers.values() if server.has_ended()), None)

    def _make_servers(self) -> dict[str, Part]:
        """Return the servers by name, in the order in which they are started."""
        kept = SavedSettings.load(self.folder, self._ports)
        ports, self.secrets, self.web_port = kept.ports, kept.secrets, kept.ports.web
        self.queues = LocalQueues(
            folder=self.folder, port=ports.sqs, host=self._sqs_host, in_memory=self._sqs_in_memory
        )
        if self._queues_only:
            return {"sqs": self.queues}
        self.postgres = Postgres(
            folder=self.folder,
            port=ports.postgres,
            password=self.secrets.data,
            identity=self._identity(),
            token=self.secrets.token,
        )
        self.valkey = Valkey(folder=self.folder, port=ports.redis, password=self.secrets.data)
        return {"postgres": self.postgres, "redis": self.valkey, "sqs": self.queues}

    def _identity(self) -> privilege.Identity:
        """Return the user that PostgreSQL runs as: a user who can run PostgreSQL, and write to the folder."""
        program = str(binaries.postgres_programs() / "postgres")
        writes = ("test", "-w", str(self.folder), "-a", "-x", str(self.folder))
        return privilege.unprivileged_identity(guarded([program, "--version"]), writes)
