"""The folder of a sandbox: its lock, and the settings that it keeps between starts."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shlex
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from redrive_service.sandbox.errors import PortIsTaken, SandboxError, SandboxIsRunning
from redrive_service.sandbox.servers.process import accepts_connections, free_port

FREE_WITHIN = 4.0  # max seconds to wait for the lock: twice the time that servers of a killed sandbox need to end
LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of the servers. The number 0 stands for the port that was used last time or, if none, a free port."""

    postgres: int = 0
    redis: int = 0
    sqs: int = 0
    web: int = 0

    def settled(self, last: Ports) -> Ports:
        """Return these ports, with a real port instead of each 0. `last` are the ports that were used last time.

        Raises:
            PortIsTaken: another program listens on a chosen port, and would answer in the sandbox's place.
        """
        for name, chosen in asdict(self).items():
            if chosen and accepts_connections(chosen):
                raise PortIsTaken(f"Something listens on port {chosen} already. Choose another --{name}-port.")
        return Ports(**{name: chosen or _again(getattr(last, name)) for name, chosen in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Passwords and keys of a sandbox, which are created at its first start.

    `data` is the password of PostgreSQL and Valkey, `django` the SECRET_KEY, and `admin` the password of the admin's
    user. `token` is a part of the names of the sandbox's files outside its folder.
    """

    data: str = field(repr=False)
    django: str = field(repr=False)
    admin: str = field(repr=False)
    token: str = field(repr=False, default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def fresh(cls) -> Self:
        """Return new random secrets for a new folder."""
        return cls(data=secrets.token_hex(24), django=secrets.token_hex(32), admin=secrets.token_hex(8))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSettings:
    """The settings that a folder keeps between starts. So environment variables that users exported stay valid."""

    ports: Ports
    secrets: Secrets

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the settings in a text that `load` wrote.

        Raises:
            ValueError, KeyError, TypeError, RecursionError: the text is not such a text.
        """
        last: Any = json.loads(text)
        ports, words = dict(last["ports"]), dict(last["secrets"])
        if not all(type(port) is int and 0 <= port <= LAST_PORT for port in ports.values()):
            raise ValueError(ports)
        if not all(re.fullmatch(r"[0-9a-f]{16,}", word) for word in words.values()):
            raise ValueError(words)
        return cls(ports=Ports(**ports), secrets=Secrets(**words))

    @classmethod
    def load(cls, folder: Path, chosen: Ports) -> Self:
        """Return the folder's settings, with the chosen ports, and save these settings.

        Raises:
            SandboxError: the settings file cannot be read: `load` did not write it.
            PortIsTaken: another program listens on a chosen port.
        """
        file = folder / "settings.json"
        try:
            last = cls.parse(file.read_text())
        except FileNotFoundError:
            last = cls(ports=Ports(), secrets=Secrets.fresh())
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SandboxError(f"{file} cannot be read. Remove the folder, or name another --folder.") from error
        kept = cls(ports=chosen.settled(last.ports), secrets=last.secrets)
        unfinished = file.with_suffix(".unfinished")
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps(asdict(kept)))
        unfinished.replace(file)
        return kept


def lock_folder(folder: Path) -> int:
    """Lock the folder, and return the file descriptor of the lock.

    Each server has a guard, a process that ends the server when the sandbox ends. The guards also hold the lock. So the
    folder of a killed sandbox stays locked until its servers have ended.

    Raises:
        SandboxIsRunning: the process that took the lock still runs, or the lock is not free after 4 s.
        SandboxError: the folder cannot be created or written to.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SandboxError(f"The folder {folder} cannot be used ({error.strerror}). Name another --folder.") from error
    deadline = time.monotonic() + FREE_WITHIN
    while not _locked(lock):
        holder = os.pread(lock, 32, 0).decode(errors="replace")
        if time.monotonic() > deadline or _is_alive(holder):
            os.close(lock)
            raise SandboxIsRunning(_running_text(folder, holder))
        time.sleep(0.05)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def in_shell(path: Path) -> str:
    """Return the path as a word of a shell, relative to the current folder if the path is below this folder."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _running_text(folder: Path, holder: str) -> str:
    """Return an error text about the sandbox that runs in the folder: how to use it, and how to stop it."""
    stop = f", or run: kill -INT {holder}" if _is_alive(holder) else ""
    return (
        f"A sandbox runs in {folder} already (process {holder or 'unknown'}).\n"
        f"To use this sandbox, run:  . {in_shell(folder / 'environment')}\n"
        f"To stop this sandbox, press Ctrl-C in its terminal{stop}\n"
        "To start another sandbox, name another --folder."
    )


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True  # the process exists, but is another user's
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    return True


def _again(last: int) -> int:
    return last if last and not accepts_connections(last) else free_port()
