"""What our own SQS remembers and tells: its calls, its clock, its health; and how it forgets."""

from __future__ import annotations

import pytest

from tests.contract.digests import body_digest
from tests.contract.endpoints import Endpoint, Sandbox, control, sqs_client
from tests.contract.queues import Queue, refused

pytestmark = pytest.mark.parametrize("endpoint", ["local"], indirect=True)


def test_it_says_that_it_is_well(endpoint: Endpoint) -> None:
    assert control(endpoint.url, "GET", "health") == {"status": "ok"}


def test_a_queue_url_names_the_host_that_was_asked(endpoint: Endpoint, queue: Queue) -> None:
    assert queue.url == f"{endpoint.url}/000000000000/{queue.name}"
    with sqs_client(endpoint.url.replace("127.0.0.1", "localhost")) as client:
        assert client.get_queue_url(QueueName=queue.name)["QueueUrl"] == queue.url.replace("127.0.0.1", "localhost")


def test_the_clock_says_what_time_it_is(endpoint: Endpoint) -> None:
    before = control(endpoint.url, "POST", "clock", {"advance": 0})["now"]
    after = control(endpoint.url, "POST", "clock", {"advance": 1000})["now"]
    assert 1000 <= after - before < 1060


def test_a_send_is_recorded_with_what_was_sent(sandbox: Sandbox, fifo: Queue) -> None:
    attributes = {
        "text": {"DataType": "String", "StringValue": "v"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00"},
    }
    sent = fifo.send("bödy", MessageGroupId="g", MessageDeduplicationId="d", MessageAttributes=attributes)
    (call,) = sandbox.calls(queue=fifo.name, action="SendMessage")
    assert [call[name] for name in ("action", "queue", "status", "code", "fault", "answered")] == [
        "SendMessage",
        fifo.name,
        200,
        None,
        None,
        True,
    ]
    (item,) = call["sent"]
    assert item == {
        "message_id": sent["MessageId"],
        "group": "g",
        "deduplication_id": "d",
        "sequence_number": sent["SequenceNumber"],
        "md5": body_digest("bödy"),
        "attributes": {"text": "v"},
        "accepted": True,
        "duplicate": False,
        "code": None,
    }


def test_receives_and_deletions_are_recorded_with_their_messages(sandbox: Sandbox, queue: Queue) -> None:
    sent = queue.send("m")["MessageId"]
    queue.receive_one(VisibilityTimeout=0)
    queue.delete(queue.receive_one())
    calls = sandbox.calls(queue=queue.name)
    happened = [(call["action"], call["received"], call["deleted"]) for call in calls]
    assert [entry for entry in happened if entry[0] in {"ReceiveMessage", "DeleteMessage"}] == [
        ("ReceiveMessage", [{"message_id": sent, "receive_count": 1, "extra": False}], []),
        ("ReceiveMessage", [{"message_id": sent, "receive_count": 2, "extra": False}], []),
        ("DeleteMessage", [], [{"message_id": sent, "took_effect": True}]),
    ]


def test_a_refused_call_is_recorded_with_its_error(sandbox: Sandbox, queue: Queue) -> None:
    refused(queue.receive, most=11)
    (call,) = sandbox.calls(queue=queue.name, action="ReceiveMessage")
    assert (call["status"], call["code"], call["received"]) == (400, "InvalidParameterValue", [])


def test_calls_are_read_from_where_one_stopped(endpoint: Endpoint, sandbox: Sandbox, queue: Queue) -> None:
    queue.send("one")
    so_far = control(endpoint.url, "GET", "calls")["next"]
    second = queue.send("two")["MessageId"]
    later = sandbox.calls(queue=queue.name, since=str(so_far))
    assert [item["message_id"] for call in later for item in call["sent"]] == [second]


def test_calls_can_be_forgotten(endpoint: Endpoint, sandbox: Sandbox, queue: Queue) -> None:
    queue.send("m")
    control(endpoint.url, "DELETE", "calls")
    assert sandbox.calls(queue=queue.name) == []


def test_a_reset_forgets_everything(endpoint: Endpoint, sandbox: Sandbox, queue: Queue) -> None:
    queue.send("m")
    sandbox.plan({"kind": "drop", "action": "SendMessage", "queue": None, "times": None})
    control(endpoint.url, "POST", "reset")
    assert sandbox.calls() == []
    assert sandbox.faults() == []
    assert endpoint.client.list_queues().get("QueueUrls", []) == []


def test_a_name_is_free_at_once_after_a_reset(endpoint: Endpoint, queue: Queue) -> None:
    endpoint.client.delete_queue(QueueUrl=queue.url)
    control(endpoint.url, "POST", "reset")
    endpoint.client.create_queue(QueueName=queue.name)
    assert queue.bodies() == []
