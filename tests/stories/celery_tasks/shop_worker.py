"""The shop's worker, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

from celery import Celery
from django.conf import settings

from tests.broker.local_sqs import SOURCES
from tests.conditions import eventually
from tests.stories.celery_tasks.shop_tasks import Told, made

_APPLICATION = "tests.stories.celery_tasks.shop_tasks"
_START = 40.0  # seconds; on two cores with other tests beside it


@dataclass
class Shop:
    """Its application for whoever sends tasks, its worker, and what its tasks left."""

    told: Told
    folder: Path
    app: Celery = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.app = made(self.told)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self.app.close()

    def marks(self) -> list[str]:
        file = Path(self.told["marks"])
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def breaks(self) -> None:
        Path(self.told["broken"]).touch()

    def is_mended(self) -> None:
        """Its tasks work again; as after any deployment, what its worker held in memory is gone."""
        assert self.process.poll() is None, self.log.read_text()[-3_000:]
        Path(self.told["broken"]).unlink()
        self._end()
        self._start()

    def works(self) -> None:
        word = uuid4().hex
        self.app.send_task("shop.end", [[word]])
        before = len(self.marks())
        eventually(lambda: len(self.marks()) > before or self.process.poll() is not None, within=_START)
        assert self.process.poll() is None, self.log.read_text()[-3_000:]

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def _start(self) -> None:
        options = ["--pool", "prefork", "--concurrency", "1", "--queues", self.told["queue"]]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
        with self.log.open("ab") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", _APPLICATION, "worker", *options, *quiet],
                env={**os.environ, "SHOP": json.dumps(self.told)}, cwd=SOURCES, stdout=written,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.works()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its pool, too
        self.process.wait(timeout=10)


def shop(folder: Path, queue: str, url: str) -> Shop:
    """A shop whose worker has begun, inside a `with` block; `queue` is what it calls the queue at `url`."""
    broker = os.environ["AWS_ENDPOINT_URL_SQS"].replace("http://", "sqs://sandbox:sandbox@")
    told: Told = {
        "broker": broker, "results": settings.REDIS_URL, "queue": queue, "url": url, "marks": str(folder / "marks"),
        "broken": str(folder / "broken"),
    }  # fmt: skip
    return Shop(told, folder)
