"""A Celery application as small as can be: `celery -A tests.broker.real_workers.tiny worker`.

It is told everything by the environment: the queues' URLs, where tasks leave their mark, and which transport is tried.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from celery import Celery

from redrive_service.broker.configuration import celery_settings

app = Celery("tiny")
app.conf.update(
    {
        name.removeprefix("CELERY_").lower(): value
        for name, value in celery_settings(
            queue_urls=json.loads(os.environ["TINY_QUEUES"]),
            region="us-east-1",
            long_poll_seconds=int(os.environ["TINY_LONG_POLL"]),
            timeouts=json.loads(os.environ["TINY_PATIENCE"]),
        ).items()
    }
)
if os.environ.get("TINY_TRANSPORT") == "kombu":
    app.conf.broker_transport = None  # then the URL decides, and that is kombu's own


def _leave(mark: str) -> None:
    with Path(os.environ["TINY_MARKS"]).open("a", encoding="utf-8") as marks:
        marks.write(f"{mark}\n")


@app.task(name="tiny.mark")
def mark(word: str) -> None:
    _leave(word)


@app.task(name="tiny.linger")
def linger(word: str, seconds: float) -> None:
    _leave(f"{word} begun")
    time.sleep(seconds)
    _leave(f"{word} ended")
