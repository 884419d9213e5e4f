"""A Celery application's tasks die, it is mended, the service brings them back; its worker survives all of it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from celery import group

from reprocessing.domain.sources.celery_failure import probable_causes
from reprocessing.domain.sources.celery_task import TaskMessage, read
from reprocessing.models import Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lanes
from tests import envelopes
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.celery_tasks.shop_worker import Shop, shop
from tests.stories.scene import drained

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

CELERY = {"kind": "celery", "strips_eta": True}  # else what was to run in an hour would die of that once more
HIDDEN = timedelta(seconds=2)


def dying(bench: Workbench) -> None:
    """The source's messages die after two receives."""
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "2"})
    attributes = {"RedrivePolicy": policy, "VisibilityTimeout": str(HIDDEN.seconds)}
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes=attributes)


def letters(bench: Workbench) -> dict[str, tuple[str, list[str]]]:
    """State or reason, and causes, of every letter, by what it is called with or else by its task, or its body."""
    found = {}
    for one in Letter.objects.filter(dlq=bench.dlq).select_related("payload"):
        body = bytes(one.payload.body)
        task = read(body)
        args = task.args if isinstance(task, TaskMessage) else [body.decode()]
        name = str(args[0]) if isinstance(args, list) else "closed"
        found[name] = one.reason or one.state, probable_causes(task, one.payload.system, visibility=HIDDEN)
    return found


@pytest.mark.long
def test_tasks_that_died_come_back_and_finish_and_no_letter_ends_their_worker(tmp_path: Path) -> None:
    bench = Workbench(target_fields=CELERY, visibility=HIDDEN.seconds)
    dying(bench)
    with shop(tmp_path, "shop", bench.source_url) as running:
        running.breaks()
        _send(running, bench)
        eventually(lambda: bench.left() == 9 and not bench.left(bench.source_url), within=60)
        running.app.send_task("shop.crash", ["crashed"])  # by itself: what waits behind it would die of the wait
        eventually(lambda: bench.left() == 10 and not bench.left(bench.source_url), within=60)
        running.is_mended()
        begun = len(running.marks())
        tally = drained(bench)
        assert (tally.delivered, tally.parked, tally.open) == (7, 3, 0)
        eventually(lambda: len(running.marks()) == begun + 5, within=30)
        assert sorted(running.marks()[begun:]) == ["charged 1", "charged 2", "crashed", "insisted", "later"]
        found = letters(bench)
        assert {name: state for name, (state, _) in found.items()} == {
            **dict.fromkeys(("charged 1", "charged 2", "insisted", "crashed", "later", "unknown"), "delivered"),
            "closed": "delivered",
            "too late": "expired", "a part": "part_of_group", "hello": "unreadable_task",
        }  # fmt: skip
        _are_explained(found)
        running.works()
        part = Letter.objects.get(dlq=bench.dlq, reason="part_of_group")
        assert act_on_parked.release([part.pk], by="a person", reason="its group has ended").refused == {}
        bench.replay()
        eventually(lambda: "a part" in running.marks(), within=30)
        # What no worker knows, and what this one may not open, dies again: it is not lost, and known as the same.
        eventually(lambda: bench.left() == 2, within=30)
        bench.capture()
        assert set(Letter.objects.filter(dlq=bench.dlq, epoch=1).values_list("state", flat=True)) == {"waiting"}
        running.works()


def test_a_diverted_task_is_done_by_workers_who_never_heard_of_its_old_queue(tmp_path: Path) -> None:
    bench = Workbench(target_fields=CELERY)
    other = bench.another_target(kind="celery", rate=None)
    url = other.url
    body = envelopes.task("shop.charge", "diverted", queue=bench.name).decode()
    bench.enqueue(body)
    Letter.objects.filter(dlq=bench.dlq).update(target=other)
    with shop(tmp_path, other.arn.rpartition(":")[2], url) as running:
        bench.replay()
        eventually(lambda: "diverted" in running.marks(), within=30)
        eventually(lambda: not bench.left(url), within=30)
        running.works()
        bench.sqs.send_message(QueueUrl=url, MessageBody=body)  # as AWS's own redrive would have sent it
        eventually(lambda: running.process.poll() is not None, within=30)  # else kombu bears it: name no queue anew


def _send(running: Shop, bench: Workbench) -> None:
    send = running.app.send_task
    for word in ("charged 1", "charged 2"):
        send("shop.charge", [word])
    send("shop.insist", ["insisted"])
    send("shop.charge", ["later"], eta=lanes.database_now() + timedelta(hours=1))
    send("shop.unknown", ["unknown"])
    send("shop.charge", ["pickled"], serializer="pickle")
    group(running.app.signature("shop.charge", ["a part"]), app=running.app).apply_async()
    bench.sqs.send_message(QueueUrl=bench.source_url, MessageBody="hello")
    late = envelopes.task("shop.charge", "too late", queue="shop", expires=lanes.database_now() - timedelta(seconds=1))
    bench.bury(late.decode())


def _are_explained(found: dict[str, tuple[str, list[str]]]) -> None:
    why = {name: sentences[0] for name, (_, sentences) in found.items()}
    assert "probably its retries were used up" in why["insisted"]
    assert "probably came to the DLQ without having run" in why["later"]
    assert "No worker can run it" in why["hello"]
    for name in ("charged 1", "crashed", "unknown", "closed"):
        assert "never acknowledged: probably its task failed" in why[name]
