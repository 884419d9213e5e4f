"""A real worker on an SQS queue whose tasks end in every possible way, and the reports about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.broker.local_sqs import SOURCES, LocalSqs
from tests.conditions import eventually
from tests.reprocessing.reasons import dying
from tests.reprocessing.reasons.stub import Stub

#: The reports about each task. A retry may be over before Celery sends its signal.
SAID = {
    "dying.fail": {("retrying", "ValueError")}, "dying.fail_for_good": {("failed", "ValueError")},
    "dying.retry": {("retrying", "ValueError"), ("delivered", "")},
    "dying.dawdle": {("retrying", "billiard.exceptions.TimeLimitExceeded")},
    "dying.reject": {("retrying", "celery.exceptions.Reject")},
    "dying.vanish": {("retrying", "billiard.exceptions.WorkerLostError")}, "dying.work": {("delivered", "")},
}  # fmt: skip


@contextmanager
def worker(sqs: LocalSqs, queue: str, stub: Stub, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CELERY_"))},
        **sqs.environment,
        "DYING_BROKER": sqs.url.replace("http://", "sqs://sandbox:sandbox@"),
        "DYING_QUEUE": queue,
        "DYING_REPORTS": stub.url,
    }
    options = ["--concurrency", "2", "--queues", dying.NAME, "--without-gossip", "--without-mingle"]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tests.reprocessing.reasons.dying", "worker", *options],
            env=environment, cwd=SOURCES, stdout=written, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        finally:
            process.kill()


def envelope(task: str) -> str:
    signature = dying.app.tasks[task].s()
    options = signature.freeze()
    message = dying.app.amqp.as_task_v2(options.id, task, (), {})
    delivery = {"exchange": "", "routing_key": dying.NAME}
    return json.dumps({
        "body": json.dumps(message.body),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": message.headers,
        "properties": {**message.properties, "delivery_info": delivery, "delivery_tag": str(uuid4())},
    })  # fmt: skip


def send(sqs: LocalSqs, queue: str, task: str, mark: str) -> str:
    """Send a task as the service redrives it; return the message id."""
    return sqs.client.send_message(
        QueueUrl=queue, MessageBody=envelope(task),
        MessageAttributes={"RedriveId": {"DataType": "String", "StringValue": mark}},
    )["MessageId"]  # fmt: skip


@pytest.mark.soak
def test_the_end_of_each_task_is_reported(stub: Stub, tmp_path: Path) -> None:
    with LocalSqs() as sqs:
        dead = sqs.make_queue("dying-dlq")
        arn = sqs.client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
        queue = sqs.make_queue(dying.NAME, RedrivePolicy=policy, VisibilityTimeout="600")
        ids = {}
        with worker(sqs, queue, stub, tmp_path / "worker.log"):
            expected = 0
            # One by one, because a killed process loses its unsent reports.
            for task, verdicts in SAID.items():
                mark = f"{uuid4()}:1"
                ids[send(sqs, queue, task, mark), mark] = task
                expected += len(verdicts)
                eventually(lambda: len(stub.reports) >= expected, within=40)  # noqa: B023  # asked before it changes
    said: dict[str, set[tuple[str, str]]] = {task: set() for task in SAID}
    for one in stub.reports:
        said[ids[one["message_id"], one["redrive_id"]]].add((one["verdict"], one.get("type", "")))
    assert said == SAID
    assert len(stub.reports) == expected
