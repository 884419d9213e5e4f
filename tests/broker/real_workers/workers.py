"""Real Celery workers in processes of their own, one queue each, so that each can be struck alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from celery import Celery

from redrive_service.broker.configuration import celery_settings
from tests.broker.local_sqs import SOURCES, LocalSqs
from tests.conditions import eventually

# Waits a test can sit through: the same mechanism as in production, a tenth of the time.
IMPATIENT = {"connect": 1.0, "receive_margin": 1.0, "first_pause": 0.1, "longest_pause": 0.8, "overdue_margin": 2.0}
START = 40.0  # seconds a worker may take to begin, with other tests beside it on two cores


@dataclass(slots=True, kw_only=True)
class Worker:
    """A running worker inside a `with` block, and the queue it alone consumes."""

    sqs: LocalSqs
    folder: Path
    name: str
    pool: str = "prefork"
    transport: str = "ours"
    long_poll: int = 1
    timeouts: Mapping[str, float] = field(default_factory=lambda: IMPATIENT)
    prefetch: int = 1
    visibility: int = 30
    process: subprocess.Popen[bytes] = field(init=False)
    url: str = field(init=False, default="")
    sender: Celery = field(init=False)
    sent: int = field(init=False, default=0)

    def __enter__(self) -> Self:
        self.url = self.sqs.make_queue(self.name, VisibilityTimeout=str(self.visibility))
        self.sender = _sender(self.name, self.url)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)
        self.sender.close()

    def start(self) -> None:
        options = ["--pool", self.pool, "--concurrency", "1", "--queues", self.name]
        options += ["--prefetch-multiplier", str(self.prefetch)]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tests.broker.real_workers.tiny", "worker", *options, *quiet],
                env=self._environment(),
                cwd=SOURCES,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that killing it takes its pool along
            )

    def _environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CELERY_"))},
            **self.sqs.environment,
            "TINY_QUEUES": json.dumps({"redrive-control": self.url, self.name: self.url}),
            "TINY_LONG_POLL": str(self.long_poll),
            "TINY_PATIENCE": json.dumps(dict(self.timeouts)),
            "TINY_TRANSPORT": self.transport,
            "TINY_MARKS": str(self.marks_file),
            "PYTHONFAULTHANDLER": "1",
        }

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def marks_file(self) -> Path:
        return self.folder / f"{self.name}.marks"

    def marks(self) -> list[str]:
        return self.marks_file.read_text(encoding="utf-8").splitlines() if self.marks_file.exists() else []

    def alive(self) -> bool:
        return self.process.poll() is None

    def has_settled_all_it_did(self) -> bool:
        calls = self.sqs.calls(action="DeleteMessage", queue=self.name)
        deleted = [entry for call in calls for entry in call["deleted"] if entry["took_effect"]]
        return len(deleted) == len(self.marks())

    def polls(self) -> int:
        return len(self.sqs.calls(action="ReceiveMessage", queue=self.name))

    def send(self, task: str, *args: object) -> None:
        self.sender.send_task(task, args=args, queue=self.name)

    def consumes(self, *, within: float) -> None:
        """Send a new task and wait until this very process has done it."""
        self.sent += 1
        word = f"{self.name} {self.sent}"
        self.send("tiny.mark", word)
        eventually(lambda: word in self.marks() or not self.alive(), within=within)
        assert self.alive(), f"the worker ended with {self.process.returncode}; see {self.log.read_text()[-3000:]}"

    def stop(self, number: signal.Signals) -> None:
        """Tell it to stop, and wait until it has; of one that hangs, the stacks of all its threads are shown."""
        self.process.send_signal(number)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # with PYTHONFAULTHANDLER: every thread's stack into the log
            self.process.wait(timeout=10)
            raise AssertionError(f"the worker did not stop: {self.log.read_text()[-6000:]}") from None


def _sender(name: str, url: str) -> Celery:
    sender = Celery("sender", set_as_current=False)
    settings = celery_settings(queue_urls={"redrive-control": url, name: url}, region="us-east-1")
    sender.conf.update({key.removeprefix("CELERY_").lower(): value for key, value in settings.items()})
    # A test's own client, whatever the environment of the session names.
    endpoint = url.split("/000000000000/", maxsplit=1)[0]
    sender.conf.update(broker_url=endpoint.replace("http://", "sqs://sandbox:sandbox@"))
    sender.conf.broker_transport_options["is_secure"] = False
    return sender
