"""A Celery app whose tasks end in every possible way: `celery -A tests.reprocessing.reasons.dying worker`.

It uses kombu's own transport.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import Any

from celery import Celery
from celery.exceptions import Reject
from kombu import Queue

from reprocessing.reasons import celery as hook

NAME, URL = "dying", os.environ.get("DYING_QUEUE", "")

app = Celery("dying", broker=os.environ.get("DYING_BROKER", "memory://"), set_as_current=False)
app.conf.update(
    broker_transport_options={
        "is_secure": False, "predefined_queues": {NAME: {"url": URL}}, "wait_time_seconds": 1,
        "fetch_message_attributes": {"MessageAttributeNames": ["RedriveId"]},
    },
    task_queues=[Queue(NAME, routing_key=NAME)],
    task_default_queue=NAME,
    task_acks_late=True,
    task_acks_on_failure_or_timeout=False,
    task_reject_on_worker_lost=False,
    task_ignore_result=True,
    worker_enable_remote_control=False,
)  # fmt: skip
if os.environ.get("DYING_REPORTS"):
    hook.install(app, url=os.environ["DYING_REPORTS"], token="token", acknowledges=True, every=0.1)

task = partial(app.task, shared=False)  # not registered with other apps


@task(name="dying.fail")
def fail() -> None:
    raise ValueError("no stock")


@task(name="dying.fail_for_good", acks_on_failure=True)
def fail_for_good() -> None:
    raise ValueError("no such order")


@task(name="dying.retry", bind=True, default_retry_delay=0)
def retry(self: Any) -> None:  # noqa: ANN401
    """Succeed the second time."""
    if not self.request.retries:
        raise self.retry(exc=ValueError("not yet"))


@task(name="dying.dawdle", time_limit=1)
def dawdle() -> None:
    time.sleep(60)


@task(name="dying.reject")
def reject() -> None:
    raise Reject("not for us", requeue=False)


@task(name="dying.vanish")
def vanish() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task(name="dying.work")
def work() -> None:
    """Succeed."""
