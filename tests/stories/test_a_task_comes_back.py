"""The short form of a Celery application's story: its worker in a thread of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, group
from celery.worker import WorkController, state
from kombu.asynchronous import set_event_loop

from reprocessing.models import Letter
from reprocessing.store.ordering import lanes
from tests import envelopes
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import drained
from tests.stories.shop_worker import shop

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of kombu's, with pycurl and redis, in our process
]


@contextmanager
def working(app: Celery) -> Iterator[threading.Thread]:
    """A worker of stock Celery that consumes, in a thread."""
    ready = threading.Event()
    worker: Any = WorkController(
        app=app, pool="solo", concurrency=1, queues=["shop"], ready_callback=lambda _: ready.set(),
        without_heartbeat=True, without_mingle=True, without_gossip=True,
    )  # fmt: skip

    def work() -> None:
        app.set_current()  # of this thread: that is where a solo pool looks its tasks up
        worker.start()

    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    try:
        assert ready.wait(20)
        yield thread
    finally:
        flags: Any = state
        flags.should_terminate = 0
        thread.join(20)
        flags.should_terminate = None
        set_event_loop(None)


def hides(bench: Workbench, seconds: int) -> None:
    """The source hides what was received for so long, and buries it at the second receive."""
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"})
    attributes = {"RedrivePolicy": policy, "VisibilityTimeout": str(seconds)}
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes=attributes)


@pytest.mark.soak
def test_a_task_that_failed_goes_back_and_finishes_and_its_worker_gets_nothing_that_harms_it(tmp_path: Path) -> None:
    bench = Workbench(target_fields={"kind": "celery"})
    running = shop(tmp_path, "shop", bench.source_url)
    hides(bench, 0)
    running.breaks()
    with working(running.app) as worker:
        running.app.send_task("shop.charge", ["charged"])
        group(running.app.signature("shop.charge", ["a part"]), app=running.app).apply_async()
        eventually(lambda: bench.left() == 2, within=20)
        late = envelopes.task(
            "shop.charge", "too late", queue="shop", expires=lanes.database_now() - timedelta(seconds=1)
        )
        for body in (late, b"hello", b'{"properties": 1}'):
            bench.bury(body.decode())
        hides(bench, 30)
        Path(running.told["broken"]).unlink()
        tally = drained(bench)
        eventually(lambda: running.marks() and not bench.left(bench.source_url), within=20)
        assert (running.marks(), tally.delivered, worker.is_alive()) == (["charged"], 1, True)
    reasons = Letter.objects.filter(dlq=bench.dlq, state="parked").values_list("reason", flat=True)
    assert sorted(reasons) == ["expired", "unreadable_task", "unreadable_task", "waits_for_a_word"]
    running.app.close()
