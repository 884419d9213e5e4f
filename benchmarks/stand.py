"""What benchmarks stand on: the embedded stack in a folder of its own, Django on it, and one real worker."""

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
    """Ticks as beat would, for as long as a benchmark waits for its worker: another process, so it has to be asked."""

    EVERY: Final = 2.0

    def __init__(self) -> None:
        self._ticked = 0.0

    def rest(self, seconds: float) -> None:
        """Send the tick that is due, if one is, and let the worker work."""
        from redrive_service.celery import app  # noqa: PLC0415  # its settings are known by now

        if time.monotonic() - self._ticked >= self.EVERY:
            app.send_task("reprocessing.tick", queue="redrive-control", expires=5)
            self._ticked = time.monotonic()
        time.sleep(seconds)


def furnish(stack: Stack, redrive: dict[str, Any]) -> None:
    """The environment of this process and of the worker's: the stack's, with these settings.REDRIVE."""
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
    import django  # noqa: PLC0415  # only now it is told its settings

    django.setup()


def employ(stack: Stack, options: Sequence[str], *, profile: Path | None = None) -> RunningServer:
    """A worker of the service, with these options of Celery's, that has done its first task."""
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
