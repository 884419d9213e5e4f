"""Faults that our own SQS makes on demand, each as a boto3 client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import BotoCoreError, ConnectionClosedError, ReadTimeoutError

from tests.contract.conftest import PATIENCE
from tests.contract.digests import body_digest
from tests.contract.endpoints import sqs_client
from tests.contract.queues import Boto, Counts, Queue, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.conftest import Background
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


def test_a_fault_strikes_as_often_as_planned_and_after_as_many_as_planned(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(
        fault("error", "SendMessage", queue, times=2, after=1, status=500, code="InternalError", message="planned")
    )

    def outcome() -> str:
        try:
            queue.send("m")
        except queue.client.exceptions.ClientError as error:
            return error.response["Error"]["Code"]
        return "sent"

    outcomes = [outcome() for _ in range(4)]
    assert outcomes == ["sent", "InternalError", "InternalError", "sent"]
    assert [planned["fired"] for planned in sandbox.faults()] == [2]


def test_a_fault_without_times_strikes_for_ever(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("false_empty", "ReceiveMessage", queue, times=None))
    queue.send("m")
    assert [queue.bodies() for _ in range(5)] == [[]] * 5
    sandbox.release()
    assert queue.bodies() == ["m"]


def test_a_fault_strikes_its_queue_and_action_only(
    sandbox: Sandbox, queue: Queue, make_queue: Callable[[], Queue]
) -> None:
    other = make_queue()
    sandbox.plan(fault("error", "SendMessage", queue, status=403, code="RequestThrottled", message="planned"))
    other.send("m")
    assert queue.bodies() == []
    assert refused(queue.send) == "RequestThrottled"


def test_a_fault_for_any_action_strikes_the_next_call(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("error", "*", queue, status=403, code="RequestThrottled", message="planned"))
    assert refused(queue.counts) == "RequestThrottled"


def test_a_new_plan_replaces_the_old(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("error", "SendMessage", queue, status=500, code="InternalError", message="planned"))
    sandbox.plan(fault("false_empty", "ReceiveMessage", queue))
    queue.send("m")
    assert [planned["kind"] for planned in sandbox.faults()] == ["false_empty"]
    assert [queue.bodies() for _ in range(2)] == [[], ["m"]]


def test_a_dropped_connection_answers_nothing_and_does_nothing(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("drop", "SendMessage"))
    with pytest.raises(ConnectionClosedError):
        queue.send("m")
    (call,) = sandbox.calls(queue=queue.name, action="SendMessage")
    assert (call["fault"], call["answered"], call["sent"]) == ("drop", False, [refused_send("m", None)])
    assert queue.counts() == Counts(0, 0, 0)


def test_a_hang_answers_nothing_and_does_nothing(sandbox: Sandbox, queue: Queue, impatient: Queue) -> None:
    sandbox.plan(fault("hang", "SendMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.send("m")
    assert queue.counts() == Counts(0, 0, 0)


def test_a_hang_ends_when_the_faults_are_cleared(
    sandbox: Sandbox, queue: Queue, background: Background, until: Callable[[Callable[[], object]], None]
) -> None:
    sandbox.plan(fault("hang", "SendMessage", queue))
    hanging = background(queue.send, "m")
    until(lambda: sandbox.faults()[0]["fired"] == 1)
    was_over = hanging.done()
    sandbox.release()
    failure = hanging.exception(PATIENCE)
    assert not was_over
    assert failure is None or isinstance(failure, BotoCoreError)


def test_an_accepted_call_may_never_be_answered(sandbox: Sandbox, queue: Queue, impatient: Queue) -> None:
    sandbox.plan(fault("accept_then_timeout", "SendMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.send("m")
    assert queue.bodies() == ["m"]


@pytest.mark.parametrize("kind", SILENCES)
def test_a_call_without_an_answer_is_recorded_as_such(
    sandbox: Sandbox, queue: Queue, impatient: Queue, kind: str, until: Callable[[Callable[[], object]], None]
) -> None:
    sandbox.plan(fault(kind, "SendMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.send("m")
    until(lambda: sandbox.calls(queue=queue.name, action="SendMessage"))
    (call,) = sandbox.calls(queue=queue.name, action="SendMessage")
    accepted = kind == "accept_then_timeout"
    assert (call["fault"], call["answered"], [sent["accepted"] for sent in call["sent"]]) == (kind, False, [accepted])


def test_a_lost_receive_hides_its_messages(
    sandbox: Sandbox, queue: Queue, impatient: Queue, endpoint: Endpoint
) -> None:
    queue.send("m")
    sandbox.plan(fault("accept_then_timeout", "ReceiveMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.receive()
    hidden = queue.bodies()
    endpoint.advance(31)
    assert (hidden, queue.bodies()) == ([], ["m"])


def test_a_lost_deletion_deletes(sandbox: Sandbox, queue: Queue, impatient: Queue) -> None:
    queue.send("m")
    message = queue.receive_one()
    sandbox.plan(fault("accept_then_timeout", "DeleteMessage", queue))
    with pytest.raises(ReadTimeoutError):
        impatient.delete(message)
    assert queue.counts() == Counts(0, 0, 0)


def test_a_duplicate_is_handed_out_and_stays_visible(sandbox: Sandbox, queue: Queue) -> None:
    sent = queue.send("m")["MessageId"]
    sandbox.plan(fault("duplicate", "ReceiveMessage", queue))
    first, second = queue.receive_one(), queue.receive_one()
    assert (first["MessageId"], second["MessageId"]) == (sent, sent)
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    assert queue.bodies() == []


@pytest.mark.parametrize(("rest", "seconds"), [({}, 0), ({"seconds": 100}, 101)], ids=["at-once", "later"])
def test_visibility_may_end_early(
    sandbox: Sandbox, queue: Queue, endpoint: Endpoint, rest: dict[str, int], seconds: int
) -> None:
    queue.send("m")
    sandbox.plan(fault("early_expiry", "ReceiveMessage", queue, **rest))
    queue.receive_one(VisibilityTimeout=1000)
    before = queue.bodies() if seconds else []
    endpoint.advance(seconds)
    assert (before, queue.bodies()) == ([], ["m"])


def test_a_receive_may_find_nothing_though_there_is_something(sandbox: Sandbox, queue: Queue) -> None:
    queue.send("m")
    sandbox.plan(fault("false_empty", "ReceiveMessage", queue))
    assert (queue.bodies(), queue.counts(), queue.bodies()) == ([], Counts(1, 0, 0), ["m"])


def test_a_batch_may_fail_in_part(sandbox: Sandbox, queue: Queue) -> None:
    sandbox.plan(fault("partial", "SendMessageBatch", queue, positions=[0, 2], code="InternalError"))
    answer = queue.send_batch(*({"Id": f"id{n}", "MessageBody": f"m{n}"} for n in range(4)))
    assert [entry["Id"] for entry in answer["Successful"]] == ["id1", "id3"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [
        ("id0", "InternalError"),
        ("id2", "InternalError"),
    ]
    assert sorted(queue.bodies()) == ["m1", "m3"]


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
