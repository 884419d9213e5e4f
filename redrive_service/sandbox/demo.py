"""The service itself on top of the embedded stack: web, worker and beat, until somebody stops them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.servers import RunningServer, Server, free_port
from redrive_service.sandbox.stack import Stack

PROJECT = Path(__file__).parents[2]
ADMIN = "admin"
Say = Callable[[str], None]


class Demo:
    """Web, worker and beat, alive inside a `with` block; entering it proves that they work together.

    Raises:
        SandboxError: a step failed; the message names it and its log.
    """

    def __init__(self, stack: Stack, *, web_port: int, say: Say) -> None:
        self.stack = stack
        self.say = say
        self.web_port = web_port or free_port()
        self._environment = {**os.environ, **stack.environment(), "PYTHONPATH": str(PROJECT)}
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        began = time.monotonic()
        password = secrets.token_urlsafe(9)
        self._manage("migrate", "--verbosity", "0")
        self._manage("ensure_admin", ADMIN, password=password)
        with ExitStack() as unwinding:
            web, worker, beat = (
                self._start(unwinding, name, command) for name, command in self._commands().items()
            )
            web.await_ready(self._web_is_ready)
            worker.await_ready(lambda: not beat.has_ended() and self._a_tick_was_consumed())
            self._exit = unwinding.pop_all()
        self.say(f"Web, worker and beat are ready after {time.monotonic() - began:.1f} s.")
        self.say(f"Admin: {self.address}/admin/  user {ADMIN}, password {password}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    @property
    def address(self) -> str:
        """Where the web server listens."""
        return f"http://127.0.0.1:{self.web_port}"

    def _commands(self) -> dict[str, list[str]]:
        python = [sys.executable, "-m"]
        celery = [*python, "celery", "-A", "redrive_service"]
        web = [*python, "gunicorn", "redrive_service.wsgi", "--bind", f"127.0.0.1:{self.web_port}", "--threads", "4"]
        worker = [*celery, "worker", "--concurrency", "2", "--loglevel", "INFO"]
        return {"web": web, "worker": worker, "beat": [*celery, "beat", "--loglevel", "INFO"]}

    def _start(self, unwinding: ExitStack, name: str, command: list[str]) -> RunningServer:
        log = self.stack.folder / f"{name}.log"
        server = RunningServer(Server(name=name, command=command, log=log, environment=self._environment))
        self.stack.servers[name] = server
        unwinding.callback(server.stop)
        return server

    def _web_is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health/ready", timeout=5) as answer:  # noqa: S310  # our own
                return bool(answer.status == 200)  # noqa: PLR2004  # HTTP's own number
        except OSError:
            return False

    def _a_tick_was_consumed(self) -> bool:
        return self._run("check_pulse", "--max-age", "5").returncode == 0

    def _manage(self, *arguments: str, password: str | None = None) -> None:
        done = self._run(*arguments, password=password)
        if done.returncode != 0:
            raise SandboxError(f"manage.py {arguments[0]} failed:\n{done.stderr.decode(errors='replace').strip()}")

    def _run(self, *arguments: str, password: str | None = None) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
        secret = {} if password is None else {"DJANGO_SUPERUSER_PASSWORD": password}
        return subprocess.run(command, check=False, capture_output=True, env={**self._environment, **secret})
