from __future__ import annotations

import json
from pathlib import Path

from redrive_service.sandbox.sqs.account import Record
from redrive_service.sandbox.sqs.calls import Call, CallLog
from tests.sandbox.sqs.world import Client, running, url_of


def test_calls_tell_which_messages_they_were_about(client: Client) -> None:
    client.call("CreateQueue", QueueName="q.fifo", Attributes={"FifoQueue": "true"})
    attributes = {
        "s": {"DataType": "String", "StringValue": "text"},
        "b": {"DataType": "Binary", "BinaryValue": "eA=="},
    }
    url = url_of("q.fifo")
    sent = client.call(
        "SendMessage",
        QueueUrl=url,
        MessageBody="x",
        MessageGroupId="g",
        MessageDeduplicationId="d",
        MessageAttributes=attributes,
    )
    (received,) = client.call("ReceiveMessage", QueueUrl=url)["Messages"]
    client.call("DeleteMessage", QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])
    client.call("DeleteMessage", QueueUrl=url, ReceiptHandle="garbage")
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
            "attributes": {"s": "text"},
        }
    ]
    assert receive["received"] == [{"message_id": sent["MessageId"], "receive_count": 1}]
    assert delete["deleted"] == [{"message_id": sent["MessageId"]}]
    assert (garbage["status"], garbage["code"], garbage["deleted"]) == (404, "ReceiptHandleIsInvalid", [])
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
    assert client.control("GET", "calls") == {"calls": [], "next": begin + 3}


def test_since_must_be_a_number(client: Client) -> None:
    answer = client.control("GET", "calls?since=yesterday")
    assert answer == {"error": "since must be a whole number: the `next` of an earlier answer."}


def test_the_log_keeps_its_latest_calls_only() -> None:
    log = CallLog(limit=3)
    for _ in range(5):
        log.add(Call(at=0, action="A", queue=None, status=200, code=None, fault=None, answered=True, record=Record()))
    shown = log.shown()
    empty: dict[str, object] = {"sent": [], "received": [], "deleted": [], "queue": None, "code": None, "fault": None}
    common = {**empty, "at": 0, "action": "A", "status": 200, "answered": True}
    assert shown == {"calls": [{**common, "n": n} for n in (2, 3, 4)], "next": 5}


def test_a_file_gets_every_call(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with running("--call-log", str(path)) as server, server.connect() as client:
        client.call("CreateQueue", QueueName="q")
        client.call("SendMessage", QueueUrl=url_of("q"), MessageBody="x")
        client.control("DELETE", "calls")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(line["n"], line["action"], len(line["sent"])) for line in lines] == [
            (0, "CreateQueue", 0),
            (1, "SendMessage", 1),
        ]
