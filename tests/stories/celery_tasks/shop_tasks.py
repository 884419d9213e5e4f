"""A shop's Celery application, as people have it: stock kombu, a queue of its own in SQS, acknowledging late.

In a worker it is told everything by the environment; the process that sends its tasks makes one for itself.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, TypedDict

from celery import Celery, Task


class Told(TypedDict):
    """What an application is told: where SQS and Redis are, its queue, and the files that its tasks know."""

    broker: str
    results: str
    queue: str
    url: str
    marks: str
    broken: str


def made(told: Told) -> Celery:
    app = Celery("shop", broker=told["broker"], backend=told["results"], set_as_current=False)
    app.conf.update(
        broker_transport_options={
            "region": "eu-west-1",
            "is_secure": False,
            "predefined_queues": {told["queue"]: {"url": told["url"]}},
            "wait_time_seconds": 0,
            "polling_interval": 0.1,
        },
        broker_connection_retry_on_startup=True,
        task_default_queue=told["queue"],
        task_acks_late=True,
        task_acks_on_failure=False,
        task_acks_on_timeout=False,
        accept_content=["json"],
        result_expires=60,
        worker_enable_remote_control=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )
    _tasks(app, Path(told["marks"]), Path(told["broken"]))
    return app


def _tasks(app: Celery, marks: Path, broken: Path) -> None:
    def leave(mark: str) -> None:
        with marks.open("a", encoding="utf-8") as file:
            file.write(f"{mark}\n")

    @app.task(name="shop.charge", shared=False)
    def charge(word: str) -> None:
        if broken.exists():
            raise ConnectionError("the bank is away")
        leave(word)

    @app.task(name="shop.insist", shared=False, bind=True, max_retries=3, default_retry_delay=0)
    def insist(self: Task[Any, Any], word: str) -> None:
        if broken.exists():
            raise self.retry()
        leave(word)

    @app.task(name="shop.crash", shared=False)
    def crash(word: str) -> None:
        if broken.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        leave(word)

    @app.task(name="shop.end", shared=False)
    def end(results: list[None]) -> None:
        leave(f"end of {len(results)}")


if told := os.environ.get("SHOP"):
    app = made(json.loads(told))
