"""Faults that our own SQS makes on demand, each as a boto3 client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.contract.digests import body_digest
from tests.contract.endpoints import sqs_client
from tests.contract.queues import Boto, Counts, Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.endpoints import Answer, Endpoint, Sandbox

pytestmark = pytest.mark.parametrize("endpoint", ["local"], indirect=True)

IMPATIENCE = 0.5  # seconds a client waits for an answer that will not come
SILENCES = ["hang", "accept_then_timeout"]


@pytest.fixture
def impatient(endpoint: Endpoint, queue: Queue) -> Iterator[Queue]:
    """The same queue through a client that gives up after half a second."""
    with sqs_client(endpoint.url, read_timeout=IMPATIENCE) as client:
        yield Queue(client, queue.url)


def refused_send(body: str, code: str | None) -> Answer:
    """What the call log tells of a send that came to nothing."""
    return {
        "message_id": None,
        "group": None,
        "deduplication_id": None,
        "sequence_number": None,
        "md5": body_digest(body),
        "attributes": {},
        "accepted": False,
        "duplicate": False,
        "code": code,
    }


def fault(kind: str, action: str = "*", queue: Queue | None = None, **rest: object) -> dict[str, object]:
    return {"kind": kind, "action": action, "queue": queue.name if queue else None, "times": 1, **rest}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (403, "RequestThrottled"),
        (400, "KMS.ThrottlingException"),
        (403, "OverLimit"),
    ],
)
def test_an_error_reaches_the_client_and_nothing_is_done(
    sandbox: Sandbox, queue: Queue, status: int, code: str
) -> None:
    sandbox.plan(fault("error", "SendMessage", status=status, code=code, message="planned"))
    with pytest.raises(queue.client.exceptions.ClientError) as caught:
        queue.send("m")
    response: Boto = caught.value.response
    assert (response["Error"]["Code"], response["Error"]["Message"]) == (code, "planned")
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert queue.counts() == Counts(0, 0, 0)
    (call,) = sandbox.calls(queue=queue.name, action="SendMessage")
    assert (call["status"], call["code"], call["fault"]) == (status, code, "error")
    assert call["sent"] == [refused_send("m", code)]


def test_a_dropped_connection_answers_nothing_and_does_nothing(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("drop", "SendMessage"))
    with pytest.raises(ConnectionClosedError):
        queue.send("m")
    (call,) = sandbox.calls(queue=queue.name, action="SendMessage")
    assert (call["fault"], call["answered"], call["sent"]) == ("drop", False, [refused_send("m", None)])
    assert queue.counts() == Counts(0, 0, 0)


def test_an_accepted_call_may_never_be_answered(sandbox: Sandbox, queue: Queue, impatient: Queue) -> None:
    sandbox.plan(fault("accept_then_timeout", "SendMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.send("m")
    assert queue.bodies() == ["m"]


def test_a_lost_deletion_deletes(sandbox: Sandbox, queue: Queue, impatient: Queue) -> None:
    queue.send("m")
    message = queue.receive_one()
    sandbox.plan(fault("accept_then_timeout", "DeleteMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.delete(message)
    assert queue.counts() == Counts(0, 0, 0)


def test_a_batch_of_deletions_may_fail_in_part(sandbox: Sandbox, queue: Queue) -> None:
    for n in range(3):
        queue.send(f"m{n}")
    messages = queue.receive()
    sandbox.plan(fault("partial", "DeleteMessageBatch", queue, positions=[1], code="InternalError"))
    answer = queue.client.delete_message_batch(
        QueueUrl=queue.url,
        Entries=[{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["0", "2"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("1", "InternalError")]
    assert queue.counts() == Counts(visible=0, in_flight=1, delayed=0)
