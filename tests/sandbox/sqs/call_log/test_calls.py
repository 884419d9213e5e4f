from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conditions import eventually
from tests.sandbox.sqs.world import Client, Server, arn, running, url_of


def test_calls_tell_which_messages_they_were_about(client: Client, fifo_url: str) -> None:
    attributes = {
        "s": {"DataType": "String", "StringValue": "text"},
        "n": {"DataType": "Number", "StringValue": "1.50"},
        "b": {"DataType": "Binary", "BinaryValue": "eA=="},
    }
    sent = client.call(
        "SendMessage",
        QueueUrl=fifo_url,
        MessageBody="x",
        MessageGroupId="g",
        MessageDeduplicationId="d",
        MessageAttributes=attributes,
    )
    (received,) = client.call("ReceiveMessage", QueueUrl=fifo_url)["Messages"]
    client.call("DeleteMessage", QueueUrl=fifo_url, ReceiptHandle=received["ReceiptHandle"])
    client.call("DeleteMessage", QueueUrl=fifo_url, ReceiptHandle="garbage")
    log = client.control("GET", "calls")
    create, send, receive, delete, garbage = log["calls"]
    assert (create["action"], create["queue"], create["status"]) == ("CreateQueue", "q.fifo", 200)
    assert send["sent"] == [
        {
            "message_id": sent["MessageId"],
            "group": "g",
            "deduplication_id": "d",
            "sequence_number": sent["SequenceNumber"],
            "md5": sent["MD5OfMessageBody"],
            "attributes": {"s": "text", "n": "1.50"},
            "accepted": True,
            "duplicate": False,
            "code": None,
        }
    ]
    assert receive["received"] == [{"message_id": sent["MessageId"], "receive_count": 1, "extra": False}]
    assert delete["deleted"] == [{"message_id": sent["MessageId"], "took_effect": True}]
    nobody = {"message_id": None, "took_effect": False}
    assert (garbage["status"], garbage["code"], garbage["deleted"]) == (404, "ReceiptHandleIsInvalid", [nobody])
    assert log["next"] == garbage["n"] + 1


def test_the_log_is_read_on_from_where_it_was_left(client: Client) -> None:
    client.call("ListQueues")
    begin = client.control("GET", "calls")["next"]
    client.call("CreateQueue", QueueName="q")
    client.call("CreateQueue", QueueName="r")
    client.call("DeleteQueue", QueueUrl=url_of("q"))
    later = client.control("GET", f"calls?since={begin}")["calls"]
    assert [call["action"] for call in later] == ["CreateQueue", "CreateQueue", "DeleteQueue"]
    chosen = client.control("GET", f"calls?since={begin}&action=CreateQueue&queue=r")["calls"]
    assert [call["n"] for call in chosen] == [begin + 1]
    client.control("DELETE", "calls")
    assert client.control("GET", "calls") == {"calls": [], "next": begin + 3, "first": begin + 3, "end": begin + 3}


@pytest.mark.parametrize("since", ["yesterday", "-1", "1.5", "%D9%A3", "%C2%B2", "1" * 19])
def test_since_must_be_a_number(client: Client, since: str) -> None:
    answer = client.control("GET", f"calls?since={since}")
    assert answer == {"error": "since must be a whole number: the `next` of an earlier answer."}


def sent_by(client: Client, action: str = "SendMessageBatch") -> list[tuple[Any, ...]]:
    """What the latest call of this kind tells of its entries: accepted, duplicate, code, deduplication id."""
    call = client.control("GET", f"calls?action={action}")["calls"][-1]
    return [(sent["accepted"], sent["duplicate"], sent["code"], sent["deduplication_id"]) for sent in call["sent"]]


def grouped(name: str, body: str = "x") -> dict[str, object]:
    return {"Id": name, "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": name}


def test_a_fifo_duplicate_is_told_from_the_first(client: Client, fifo_url: str) -> None:
    for body in ("first", "second"):
        client.call("SendMessageBatch", QueueUrl=fifo_url, Entries=[grouped("a", body)])
    first, second = (call["sent"][0] for call in client.control("GET", "calls?action=SendMessageBatch")["calls"])
    assert (first["accepted"], first["duplicate"]) == (True, False)
    assert second == {**first, "duplicate": True, "md5": "a9f0e61a137d86aa9db53465e0801612"}


def test_every_entry_of_a_batch_is_told_with_its_fate(client: Client, fifo_url: str) -> None:
    client.control("PUT", "faults", [{"kind": "partial", "positions": [1]}])
    attributes = {"n": {"DataType": "Number", "StringValue": "1"}, "b": {"DataType": "Binary", "BinaryValue": "eA=="}}
    entries = [grouped("a"), {**grouped("b"), "MessageAttributes": attributes}, grouped("c", "\x01")]
    client.call("SendMessageBatch", QueueUrl=fifo_url, Entries=entries)
    assert sent_by(client) == [
        (True, False, None, "a"),
        (False, False, "InternalError", "b"),
        (False, False, "InvalidMessageContents", "c"),
    ]
    struck = client.control("GET", "calls?action=SendMessageBatch")["calls"][0]["sent"][1]
    assert struck == {
        "message_id": None,
        "group": "g",
        "deduplication_id": "b",
        "sequence_number": None,
        "md5": "9dd4e461268c8034f5c8564e155c67a6",
        "attributes": {"n": "1"},
        "accepted": False,
        "duplicate": False,
        "code": "InternalError",
    }


@pytest.mark.parametrize("kind", ["drop", "hang"])
def test_a_send_that_was_never_done_is_told_as_not_accepted(
    server: Server, client: Client, kind: str, fifo_url: str
) -> None:
    client.control("PUT", "faults", [{"kind": kind, "times": 1}])
    with server.connect() as victim:
        victim.post("SendMessageBatch", QueueUrl=fifo_url, Entries=[grouped("a"), grouped("b")])
        lost = eventually(lambda: client.control("GET", "calls?action=SendMessageBatch")["calls"], within=10)
    assert [call["answered"] for call in lost] == [False]
    assert sent_by(client) == [(False, False, None, "a"), (False, False, None, "b")]


@pytest.mark.parametrize(
    "entries", [None, {}, "x", [1], [{}], [{"Id": "a", "MessageBody": 1, "MessageAttributes": {"\ud800": "\ud800"}}]]
)
def test_entries_that_make_no_sense_are_told_as_far_as_they_can_be_read(
    client: Client, entries: object, url: str
) -> None:
    client.control("PUT", "faults", [{"kind": "error", "status": 503, "code": "ServiceUnavailable"}])
    client.call("SendMessageBatch", QueueUrl=url, Entries=entries)
    told = [(False, False, "ServiceUnavailable", None)] if isinstance(entries, list) and entries != [1] else []
    assert sent_by(client) == told


def deleted_by(client: Client, action: str) -> list[dict[str, Any]]:
    deleted: list[dict[str, Any]] = client.control("GET", f"calls?action={action}")["calls"][-1]["deleted"]
    return deleted


def test_a_delete_without_effect_names_its_message(client: Client, url: str) -> None:
    name = client.call("SendMessage", QueueUrl=url, MessageBody="x")["MessageId"]
    (old,) = client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=0)["Messages"]
    (new,) = client.call("ReceiveMessage", QueueUrl=url)["Messages"]
    for handle, effect in [(old, False), (new, True), (new, False)]:
        client.call("DeleteMessage", QueueUrl=url, ReceiptHandle=handle["ReceiptHandle"])
        assert deleted_by(client, "DeleteMessage") == [{"message_id": name, "took_effect": effect}]


def test_a_refused_delete_names_its_message(client: Client, fifo_url: str) -> None:
    client.call("SendMessageBatch", QueueUrl=fifo_url, Entries=[grouped("a")])
    (held,) = client.call("ReceiveMessage", QueueUrl=fifo_url, VisibilityTimeout=0)["Messages"]
    told = {"message_id": held["MessageId"], "took_effect": False}
    entries = [{"Id": "1", "ReceiptHandle": held["ReceiptHandle"]}, {"Id": "2", "ReceiptHandle": "garbage"}]
    client.call("DeleteMessageBatch", QueueUrl=fifo_url, Entries=entries)
    assert deleted_by(client, "DeleteMessageBatch") == [told, {"message_id": None, "took_effect": False}]
    client.control("PUT", "faults", [{"kind": "error"}])
    client.call("DeleteMessage", QueueUrl=fifo_url, ReceiptHandle=held["ReceiptHandle"])
    assert deleted_by(client, "DeleteMessage") == [told]


def dead_letter_pair(client: Client, receives: int) -> str:
    client.call("CreateQueue", QueueName="dlq")
    policy = json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": receives})
    client.call("CreateQueue", QueueName="q", Attributes={"RedrivePolicy": policy})
    return url_of("q")


@pytest.mark.soak
@pytest.mark.parametrize("wait", [0, 1])
def test_dead_lettering_is_told_by_the_receive_that_did_it(client: Client, wait: int) -> None:
    url = dead_letter_pair(client, 1)
    name = client.call("SendMessage", QueueUrl=url, MessageBody="x")["MessageId"]
    client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=0)
    client.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=wait)
    calls = client.control("GET", "calls?action=ReceiveMessage")["calls"]
    assert [call["dead_lettered"] for call in calls if call["dead_lettered"]] == [
        [{"message_id": name, "from": "q", "to": "dlq"}]
    ]
    assert [call["status"] for call in calls] == ([200, None, 200] if wait else [200, 200])


@pytest.mark.parametrize("fault", [{"kind": "duplicate"}, {"kind": "early_expiry", "seconds": 5}])
def test_what_a_fault_alone_delivered_again_is_told(client: Client, fault: dict[str, object], url: str) -> None:
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    client.control("PUT", "faults", [{**fault, "times": 1}])
    for later in (0, 5, 30):
        client.control("POST", "clock", {"advance": later})
        client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=30)
    calls = client.control("GET", "calls?action=ReceiveMessage")["calls"]
    told = [(call["fault"], call["received"][0]["receive_count"], call["received"][0]["extra"]) for call in calls]
    assert told == [(fault["kind"], 1, False), (None, 2, True), (None, 3, False)]


def test_a_consumer_that_gave_a_message_back_made_the_next_delivery_itself(client: Client, url: str) -> None:
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    client.control("PUT", "faults", [{"kind": "early_expiry", "seconds": 5, "times": 1}])
    (held,) = client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=30)["Messages"]
    client.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=held["ReceiptHandle"], VisibilityTimeout=0)
    client.call("ReceiveMessage", QueueUrl=url)
    calls = client.control("GET", "calls?action=ReceiveMessage")["calls"]
    assert [call["received"][0]["extra"] for call in calls] == [False, False]


def test_a_file_is_written_on_behind_what_it_holds_and_read_from_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"of": "an earlier server"}\n')
    with running("--call-log", str(path)) as server, server.connect() as client:
        client.call("CreateQueue", QueueName="q")
        log = client.control("GET", "calls?since=0")
        assert [(call["n"], call["action"]) for call in log["calls"]] == [(0, "CreateQueue")]
    assert len(path.read_text().splitlines()) == 2


def test_a_server_that_cannot_write_its_log_ends_with_a_sentence() -> None:
    server = Server("--call-log", "/dev/full")
    with server.connect() as client, pytest.raises(ConnectionError):
        client.call("ListQueues")
    _, said = server.process.communicate(timeout=30)
    assert (server.process.returncode, said) == (1, "The call log cannot be written: No space left on device.\n")
