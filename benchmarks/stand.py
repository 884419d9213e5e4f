"""The environment of benchmarks: the embedded stack in its own folder, Django set up for it, and one real worker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from redrive_service.sandbox.servers.process import RunningServer, Server  # noqa: E402  # found through the line above
from redrive_service.sandbox.stack import Stack  # noqa: E402


class Beat:
    """Sends beat's ticks while a benchmark waits for its worker, which is another process."""

    EVERY: Final = 2.0

    def __init__(self) -> None:
        self._ticked = 0.0

    def tick_and_wait(self, seconds: float) -> None:
        """Send a tick if it is due, then wait for this many seconds, while the worker works."""
        from redrive_service.celery import app  # noqa: PLC0415  # its settings are known by now

        if time.monotonic() - self._ticked >= self.EVERY:
            app.send_task("reprocessing.tick", queue="redrive-control", expires=5)
            self._ticked = time.monotonic()
        time.sleep(seconds)


def set_up_django(stack: Stack, redrive: dict[str, Any]) -> None:
    """Set the environment of this process and of the worker to the stack, and settings.REDRIVE to `redrive`."""
    (stack.folder / "benchmark_settings.py").write_text(
        f"from redrive_service.settings import *\nREDRIVE = {redrive}\n"
    )
    sys.path.insert(0, str(stack.folder))
    os.environ |= {
        **stack.environment(),
        "PYTHONPATH": f"{stack.folder}:{ROOT}",
        "DJANGO_SETTINGS_MODULE": "benchmark_settings",
    }
    subprocess.run([sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"], check=True)
    import django  # noqa: PLC0415  # its settings are only known now

    django.setup()


def start_worker(stack: Stack, options: Sequence[str], *, profile: Path | None = None) -> RunningServer:
    """Start a worker with these Celery options; return it after its first task. `profile`: file for a cProfile."""
    from redrive_service.celery import app  # noqa: PLC0415  # its settings are known by now

    profiler = ["-m", "cProfile", "-o", str(profile)] if profile else []
    command = [sys.executable, *profiler, "-m", "celery", "-A", "redrive_service", "worker", "-l", "WARNING", *options]
    log = stack.folder / "worker.log"
    worker = RunningServer(Server(name="worker", command=command, log=log, environment=dict(os.environ)))
    app.send_task("reprocessing.tick", queue="redrive-control")
    with psycopg.connect(stack.postgres.url, autocommit=True) as database:
        beats = "SELECT count(*) FROM redrive_heartbeat"
        worker.await_ready(lambda: (database.execute(beats).fetchone() or (0,))[0] > 0)
    return worker
