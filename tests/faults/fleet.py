"""Real workers of the service on the tests' own database, and the tests themselves in the place of beat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from reprocessing import tasks
from tests.beside import Beside
from tests.conditions import eventually

ROOT = Path(__file__).resolve().parents[2]
QUEUES = "redrive-control,redrive-capture,redrive-replay"


def environment() -> dict[str, str]:
    parts = urlsplit(os.environ["DATABASE_URL"])
    database = parts._replace(path=f"/{connection.settings_dict['NAME']}")
    return {**os.environ, "DATABASE_URL": urlunsplit(database), "PYTHONPATH": str(ROOT)}


#: Ends a worker whose test was killed, and itself as soon as that worker is gone.
MINDER = (
    'while kill -0 "$1" 2>/dev/null; do kill -0 "$2" 2>/dev/null || exit 0; sleep 1; done; kill -9 "-$2" 2>/dev/null'
)


class Worker:
    """One worker with its children, killed as one; also when this process is killed."""

    root = ROOT

    def __init__(self, folder: Path, name: str, *, concurrency: int = 2, **more: str) -> None:
        self.log = folder / f"{name}.log"
        command = [sys.executable, "-m", "celery", "-A", "redrive_service", "worker", "--queues", QUEUES]
        command += ["--concurrency", str(concurrency), "--loglevel", "INFO", "--hostname", f"{name}@%h"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=self.root, env={**environment(), "PYTHONPATH": str(self.root), **more},
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        self._minder = subprocess.Popen(
            ["/bin/sh", "-c", MINDER, "sh", str(os.getpid()), str(self.process.pid)], start_new_session=True
        )

    def await_ready(self) -> None:
        eventually(lambda: b" ready." in self.log.read_bytes(), within=60)

    def kill(self) -> None:
        """SIGKILL to all of it: no handler runs, nothing is handed back."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        self.await_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        if self._minder.poll() is None:
            self._minder.kill()
        self._minder.wait()


class Beat(Beside):
    """Ticks as beat would, every two seconds, from this process."""

    def __init__(self, every: float = 2.0) -> None:
        super().__init__("beat of a test")
        self._every = every

    def go_on(self) -> None:
        while not self.over.is_set():
            tasks.tick.apply_async(queue=tasks.CONTROL, expires=5)
            self.over.wait(self._every)
