"""Start a server process of the sandbox, wait for it, and stop it. The server also ends if this process is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redrive_service.sandbox.errors import ServerDidNotStart
from redrive_service.sandbox.stopping import raise_if_stopped

PROJECT = Path(__file__).parents[3]
GUARD = Path(__file__).with_name("guard.py")
READY_WITHIN = 30.0  # max seconds until a server is ready; usually about 1
STOPPED_WITHIN = 45.0  # max seconds until a stopped guard has ended; it needs less


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server to start: its command, and how to stop it.

    Attributes:
        name: the name in messages, and of the log file.
        command: the program and its arguments.
        log: the file to which the server's output is appended.
        stop_signals: signals that stop the server, such as "INT", "QUIT". They are sent in this order, then KILL.
        prefix: words that are put before the command, such as `unshare …` to run the server in a user namespace.
        user: the user to run the server as, or None for the current user.
        environment: all environment variables of the server, or None for the environment variables of this process.
        lock: a file descriptor that stays open until the server has ended.
    """

    name: str
    command: Sequence[str]
    log: Path
    stop_signals: Sequence[str] = ("TERM",)
    prefix: Sequence[str] = ()
    user: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    lock: int | None = None


class RunningServer:
    """A started server. `stop` ends it. It also ends within two seconds after the end of this process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        with server.log.open("ab") as log:
            self._logged_before = log.tell()
            self._guard = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if server.environment is None else dict(server.environment),
                pass_fds=() if server.lock is None else (server.lock,),
                start_new_session=True,  # so that Ctrl-C reaches only this process, which stops the servers in order
                cwd="/",  # the current folder may be unreadable, or have modules with the same names
            )

    def _command(self) -> list[str]:
        server = self.server
        return [*server.prefix, *guarded(server.command, server.stop_signals, server.user)]

    def await_ready(self, probe: Callable[[], bool], *, within: float = READY_WITHIN) -> None:
        """Return when `probe` returns true.

        Raises:
            ServerDidNotStart: the server ended first, or was not ready after `within` seconds.
            Stopped: the user stopped the sandbox meanwhile.
        """
        try:
            self._wait(probe, within)
        except BaseException:
            self.stop()
            raise

    def _wait(self, probe: Callable[[], bool], within: float) -> None:
        deadline = time.monotonic() + within
        while not probe():
            raise_if_stopped()
            if self._guard.poll() is not None:
                raise ServerDidNotStart(f"{self.server.name} ended before it was ready. {self._last_words()}")
            if time.monotonic() > deadline:
                raise ServerDidNotStart(f"{self.server.name} was not ready within {within:g} s. {self._last_words()}")
            time.sleep(0.02)

    def await_end(self) -> None:
        """Wait for the end of a program that ends by itself.

        Raises:
            ServerDidNotStart: the program failed.
            Stopped: the user stopped the sandbox meanwhile.
        """
        try:
            while not self.has_ended():
                raise_if_stopped()
                time.sleep(0.02)
        except BaseException:
            self.stop()
            raise
        if self._guard.returncode != 0:
            raise ServerDidNotStart(f"{self.server.name} failed. {self._last_words()}")

    def has_ended(self) -> bool:
        """Return whether the server's process has ended."""
        return self._guard.poll() is not None

    def stop(self) -> None:
        """Stop the server with its stop signals, and wait for its end."""
        self.ask_to_stop()
        self._guard.wait(STOPPED_WITHIN)

    def ask_to_stop(self) -> None:
        """Ask the server to stop, without waiting for its end."""
        self._guard.terminate()

    def log_since_start(self) -> str:
        """Return the output of the server since this start."""
        with self.server.log.open("rb") as log:
            log.seek(self._logged_before)
            return log.read().decode(errors="replace")

    def _last_words(self) -> str:
        lines = self.log_since_start().strip().splitlines()[-8:]
        words = "\n    ".join(lines) or "It wrote nothing."
        return f"The end of {self.server.log}:\n    {words}"


def guarded(command: Sequence[str], stop_signals: Sequence[str] = ("TERM",), user: str | None = None) -> list[str]:
    """Return a command that runs `command` under a guard process, which stops it when this process ends."""
    guard = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid())]
    return [*guard, ",".join(stop_signals), user or "-", "--", *command]


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    """Return whether a program listens on this port of the loopback address."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
