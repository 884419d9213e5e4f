"""Run the service (web server, workers and beat) on the sandbox's PostgreSQL, Valkey and local SQS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.incident.incident import Incident, Service, Summary
from redrive_service.sandbox.servers.process import PROJECT, RunningServer, Server
from redrive_service.sandbox.stack import Stack
from redrive_service.sandbox.stopping import raise_if_stopped

ADMIN = "admin"
Report = Callable[[str], None]


class Demo:
    """Web server, workers and beat, which run inside a `with` block. The block begins when they work together.

    Raises:
        SandboxError: a step failed. The error names the step, or the server and its log.
    """

    def __init__(self, stack: Stack, *, say: Report) -> None:
        self.stack = stack
        self.say = say
        ours = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self._environment = {**ours, **stack.environment(), "REDRIVE_FIRST_STEPS": "yes", "PYTHONPATH": str(PROJECT)}
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        began = time.monotonic()
        self._manage("migrate", "--verbosity", "0")
        self._make_admin()
        with ExitStack() as unwinding:
            servers = [self._start(unwinding, name, command) for name, command in self._commands().items()]
            web, worker, replayer, beat = servers
            for server in servers:
                unwinding.callback(
                    server.ask_to_stop
                )  # ask all to stop before the first is awaited, so that they stop at the same time
            web.await_ready(lambda: self._web_is_ready(web))
            worker.await_ready(lambda: self._a_tick_was_consumed(since=began) or beat.has_ended())
            replayer.await_ready(lambda: " ready." in replayer.log_since_start())
            beat.await_ready(lambda: not beat.has_ended())
            self._exit = unwinding.pop_all()
        self.say(f"Web server, worker and beat are ready after {time.monotonic() - began:.1f} s:")
        self.say("Beat sent a task, the worker ran it, and the web server reports both.")
        self.say(self.admin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    @property
    def address(self) -> str:
        """Return the URL of the web server."""
        return f"http://127.0.0.1:{self.stack.web_port}"

    def tell_incident(self, letters: int) -> Summary:
        """Let the consumer of a simulated shop fail on this many messages, redrive them, and check the redrive.

        Raises:
            SandboxError: the incident did not end. The error says which step did not end.
            Stopped: the user stopped the sandbox meanwhile.
        """
        seed = int.from_bytes(os.urandom(4))  # random, so that each incident has its own queues
        service = Service(manage=self._manage, watch=self._watch)
        incident = Incident(self.stack.folder, self.stack.environment(), service=service, say=self.say, seed=seed)
        return incident.run(letters, self._exit)

    def admin(self) -> str:
        """Return a line with the admin's URL, user name and password."""
        return f"Admin: {self.address}/admin/  user {ADMIN}, password {self.stack.secrets.admin}"

    def _commands(self) -> dict[str, list[str]]:
        python = [sys.executable, "-m"]
        celery = [*python, "celery", "-A", "redrive_service"]
        at = ["--bind", f"127.0.0.1:{self.stack.web_port}", "--health", "127.0.0.1:0"]
        web = [sys.executable, str(PROJECT / "manage.py"), "serve", *at]
        worker = [*celery, "worker", "--concurrency", "2", "--loglevel", "INFO", "--queues"]
        return {
            "web": web,
            "worker": [*worker, "redrive-control,redrive-capture"],
            # A second worker: a replay that waits for its rate occupies a slot, but returned messages must be captured.
            "replayer": [*worker, "redrive-replay"],
            "beat": [*celery, "beat", "--loglevel", "INFO"],
        }

    def _start(self, unwinding: ExitStack, name: str, command: list[str]) -> RunningServer:
        log = self.stack.folder / f"{name}.log"
        server = RunningServer(Server(name=name, command=command, log=log, environment=self._environment))
        self.stack.servers[name] = server
        unwinding.callback(server.stop)
        return server

    def _web_is_ready(self, web: RunningServer) -> bool:
        # Check the log of the process first: if the port was taken, another program answers.
        return f"Listening at: {self.address}" in web.log_since_start() and self._ask("ready") is not None

    def _a_tick_was_consumed(self, *, since: float) -> bool:
        """Return whether a worker ran the task "tick", which beat sends each second, after the time `since`."""
        answer = self._ask("work")
        return answer is not None and float(str(answer["age_seconds"])) < time.monotonic() - since

    def _ask(self, question: str) -> dict[str, object] | None:
        """Return the JSON of the web server's page /health/`question`, or None if its status is not 200."""
        try:
            with urllib.request.urlopen(f"{self.address}/health/{question}", timeout=5) as answer:  # noqa: S310  # http
                return dict(json.load(answer))
        except OSError:
            return None

    def _make_admin(self) -> None:
        command = ("createsuperuser", "--noinput", "--username", ADMIN, "--email", "admin@localhost.invalid")
        done = self._run(*command, DJANGO_SUPERUSER_PASSWORD=self.stack.secrets.admin)
        if done.returncode != 0 and b"already taken" not in done.stderr:
            raise SandboxError(f"The admin's user could not be made: {done.stderr.decode(errors='replace').strip()}")

    def _manage(self, *arguments: str) -> str:
        """Run a command of manage.py, and return its standard output. Raises SandboxError if the command failed."""
        done = self._run(*arguments)
        if done.returncode != 0:
            raise SandboxError(f"manage.py {arguments[0]} failed:\n{done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode()

    def _watch(self, *arguments: str) -> RunningServer:
        """Start a command of manage.py that runs until it is stopped. Its output goes to the file watch.log."""
        command, log = [sys.executable, str(PROJECT / "manage.py"), *arguments], self.stack.folder / "watch.log"
        return RunningServer(
            Server(name=f"manage.py {arguments[0]}", command=command, log=log, environment=self._environment)
        )

    def _run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(PROJECT / "manage.py"), *arguments]
        environment = {**self._environment, **more}
        done = subprocess.run(command, check=False, capture_output=True, env=environment, start_new_session=True)
        raise_if_stopped()
        return done
