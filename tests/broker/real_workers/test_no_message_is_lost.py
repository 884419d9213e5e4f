"""A worker loses nothing: not what it does not know, not when it is told to stop, not when it is killed."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprocessing.domain.aws.iam_policy import CALLS, Purpose
from tests.broker.local_sqs import LocalSqs
from tests.broker.real_workers.workers import START, Worker
from tests.conditions import eventually

SECRET = "hunter2"


def envelope(*, headers: dict[str, object], body: object = (), kind: str = "application/json") -> str:
    """What kombu makes of a message, as far as its reader looks."""
    return json.dumps(
        {
            "body": base64.b64encode(json.dumps(body or [[SECRET], {}, {}]).encode()).decode(),
            "content-type": kind,
            "content-encoding": "utf-8",
            "headers": headers,
            "properties": {
                "body_encoding": "base64",
                "delivery_info": {"exchange": "", "routing_key": "foreign"},
                "delivery_tag": SECRET,
            },
        }
    )


HELD = 3  # messages a worker with this prefetch holds: one that runs and two that wait


@pytest.fixture
def sqs() -> Iterator[LocalSqs]:
    with LocalSqs() as sqs:
        yield sqs


@pytest.mark.soak
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_told_to_stop_finishes_what_runs_and_shows_the_rest_again(
    sqs: LocalSqs, tmp_path: Path, pool: str
) -> None:
    with Worker(sqs=sqs, folder=tmp_path, name="stopping", pool=pool, prefetch=HELD, visibility=600) as worker:
        worker.consumes(within=START)
        asked = sqs.asked(worker.name)
        for number in range(HELD):
            worker.send("tiny.linger", f"task {number}", 1.5)
        eventually(lambda: sqs.in_flight(worker.url) == HELD, within=20)
        worker.stop(signal.SIGTERM)
        begun = worker.marks()[1:]
        assert [mark.split()[-1] for mark in begun] == ["begun", "ended"]
        asked |= sqs.asked(worker.name) - {"GetQueueAttributes"}  # this test asks for those, too
        assert {f"sqs:{one}" for one in asked - {"CreateQueue"}} == set(CALLS[Purpose.OWN])
        assert (sqs.visible(worker.url), sqs.in_flight(worker.url)) == (HELD - 1, 0)


@pytest.mark.soak
def test_what_a_killed_worker_held_is_done_by_the_next(sqs: LocalSqs, tmp_path: Path) -> None:
    with Worker(sqs=sqs, folder=tmp_path, name="killed", pool="threads", visibility=3) as worker:
        worker.consumes(within=START)
        worker.send("tiny.linger", "task", 1.0)
        eventually(lambda: "task begun" in worker.marks(), within=20)
        worker.stop(signal.SIGKILL)
        worker.start()
        eventually(lambda: worker.marks().count("task ended"), within=START)
        eventually(lambda: (sqs.visible(worker.url), sqs.in_flight(worker.url)) == (0, 0), within=10)


FOREIGN = {
    "text": SECRET,
    "json": json.dumps({"card": SECRET}),
    "an envelope without a task": envelope(headers={"card": SECRET}),
    "an envelope that cannot be decoded": envelope(headers={"task": "tiny.mark", "id": "1"}, kind="application/x-odd"),
    "a pickle": envelope(headers={"task": "tiny.mark", "id": "2"}, kind="application/x-python-serialize"),
    "a task nobody knows": envelope(headers={"task": "tiny.unknown", "id": "3", "argsrepr": SECRET}),
    "a task with damaged arguments": envelope(headers={"task": "tiny.mark", "id": "4"}, body=[SECRET]),
    "one time limit": envelope(headers={"task": "tiny.mark", "id": "5", "timelimit": [1]}),
    "time limits in words": envelope(headers={"task": "tiny.mark", "id": "6", "timelimit": [SECRET, SECRET]}),
    "a shadow that is no name": envelope(headers={"task": "tiny.mark", "id": "7", "shadow": [SECRET]}),
    "an id that is no name": envelope(headers={"task": "tiny.mark", "id": [SECRET]}),
    "a far ETA": envelope(headers={"task": "tiny.mark", "id": "8", "eta": "2100-01-01T00:00:00+00:00"}),
    "a compression nobody knows": envelope(headers={"task": "tiny.mark", "id": SECRET, "compression": SECRET}),
    "what follows is junk": envelope(headers={"task": "tiny.mark", "id": "9"}, body=[[], {}, SECRET]),
    "callbacks": envelope(headers={"task": "tiny.mark", "id": "10"}, body=[[], {}, {"callbacks": [SECRET]}]),
}


@pytest.mark.parametrize("pool", ["prefork", pytest.param("threads", marks=pytest.mark.soak)])
def test_what_is_no_task_is_left_to_sqs_and_its_content_stays_out_of_the_log(
    sqs: LocalSqs, tmp_path: Path, pool: str
) -> None:
    with Worker(sqs=sqs, folder=tmp_path, name="foreign", pool=pool, visibility=600) as worker:
        worker.consumes(within=START)
        for body in FOREIGN.values():
            sqs.client.send_message(QueueUrl=worker.url, MessageBody=body)
        eventually(lambda: sqs.in_flight(worker.url) == len(FOREIGN), within=20)
        worker.consumes(within=START)
        eventually(worker.has_settled_all_it_did, within=10)

        assert sqs.in_flight(worker.url) == len(FOREIGN)
        assert worker.log.read_text().count("redrive.broker.message_refused") == len(FOREIGN)
        assert SECRET not in worker.log.read_text()
