from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.sqs.world import Client, Server


def plan(client: Client, **fault: object) -> None:
    client.control("PUT", "faults", [fault])


def calls(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.control("GET", "calls?queue=q")["calls"]
    return found[1:]  # without CreateQueue


def test_an_error_is_answered_as_told_and_nothing_is_done(client: Client, url: str) -> None:
    plan(
        client, kind="error", action="SendMessage", status=400, code="KMS.ThrottlingException", message="busy", times=1
    )
    client.post("SendMessage", QueueUrl=url, MessageBody="x")
    assert client.read() == (400, {"__type": "com.amazonaws.sqs#KmsThrottled", "message": "busy"})
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    (failed, _) = calls(client)
    assert (failed["status"], failed["code"], failed["fault"], failed["answered"], failed["sent"][0]["accepted"]) == (
        400, "KMS.ThrottlingException", "error", True, False
    )  # fmt: skip
    assert "MessageId" in client.call("SendMessage", QueueUrl=url, MessageBody="x")
    client.post_control("GET", "faults")
    assert client.read()[1][0]["fired"] == 1


def test_a_drop_closes_the_connection_and_does_nothing(server: Server, client: Client, url: str) -> None:
    plan(client, kind="drop", action="SendMessage", times=1)
    with server.connect() as victim:
        victim.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert victim.is_closed()
    (dropped,) = calls(client)
    assert (dropped["status"], dropped["fault"], dropped["answered"]) == (None, "drop", False)
    assert client.call("ReceiveMessage", QueueUrl=url) == {}


@pytest.mark.soak
def test_a_delayed_call_is_done_and_answered_later(server: Server, client: Client, url: str) -> None:
    plan(client, kind="delay", action="SendMessage", milliseconds=500, jitter=100)
    with server.connect() as delayed:
        delayed.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert client.call("ReceiveMessage", QueueUrl=url) == {}
        assert "MessageId" in delayed.read()[1]
    assert [message["Body"] for message in client.call("ReceiveMessage", QueueUrl=url)["Messages"]] == ["x"]
    assert [(call["action"], call["fault"], call["answered"]) for call in calls(client)] == [
        ("ReceiveMessage", None, True), ("SendMessage", "delay", True), ("ReceiveMessage", None, True)
    ]  # fmt: skip


def test_a_delayed_send_wakes_a_receive_that_waits(server: Server, client: Client, url: str) -> None:
    plan(client, kind="delay", action="SendMessage", milliseconds=10)
    with server.connect() as waiter:
        waiter.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        assert waiter.is_silent(0.1)
        client.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert not waiter.is_silent(10), "it waits until its own end, or until another call arrives"
        assert [message["Body"] for message in waiter.read()[1]["Messages"]] == ["x"]


def test_a_delayed_receive_that_waits_ends_by_itself(client: Client, url: str) -> None:
    plan(client, kind="delay", action="ReceiveMessage", milliseconds=10)
    client.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)
    assert not client.is_silent(10)
    assert client.read() == (200, {})


def test_a_hanging_call_does_nothing_until_it_is_released(server: Server, client: Client, url: str) -> None:
    plan(client, kind="hang", action="SendMessage")
    with server.connect() as victim:
        victim.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert victim.is_silent(0.2)
        assert client.call("ReceiveMessage", QueueUrl=url) == {}
        client.control("DELETE", "faults")
        assert "MessageId" in victim.read()[1]
    assert [(call["action"], call["fault"], call["answered"]) for call in calls(client)] == [
        ("SendMessage", "hang", False),
        ("ReceiveMessage", None, True),
        ("SendMessage", None, True),
    ]


def test_a_hanging_call_whose_client_left_is_never_done(server: Server, client: Client, url: str) -> None:
    plan(client, kind="hang", action="SendMessage")
    with server.connect() as victim:
        victim.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert victim.is_silent(0.1)
    client.control("DELETE", "faults")
    assert client.call("ReceiveMessage", QueueUrl=url) == {}


def test_accept_then_timeout_does_the_work_and_never_answers(server: Server, client: Client, url: str) -> None:
    plan(client, kind="accept_then_timeout", action="SendMessage", times=1)
    with server.connect() as victim:
        victim.post("SendMessage", QueueUrl=url, MessageBody="x")
        assert victim.is_silent(0.2)
        (message,) = client.call("ReceiveMessage", QueueUrl=url)["Messages"]
        client.control("DELETE", "faults")
        assert victim.is_closed()
    silent, _ = calls(client)
    assert (silent["fault"], silent["answered"], silent["sent"][0]["message_id"]) == (
        "accept_then_timeout", False, message["MessageId"]
    )  # fmt: skip


def test_an_accepted_receive_that_times_out_takes_its_messages(server: Server, client: Client, url: str) -> None:
    plan(client, kind="accept_then_timeout", action="ReceiveMessage", times=1)
    with server.connect() as victim:
        victim.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        assert victim.is_silent(0.1)
        client.call("SendMessage", QueueUrl=url, MessageBody="x")
        assert victim.is_silent(0.1)
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    client.control("POST", "clock", {"advance": 30})
    assert client.call("ReceiveMessage", QueueUrl=url)["Messages"][0]["Body"] == "x"


def test_a_duplicate_is_handed_out_and_stays_visible(client: Client, url: str) -> None:
    plan(client, kind="duplicate", times=1)
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    (mine,) = client.call("ReceiveMessage", QueueUrl=url)["Messages"]
    (yours,) = client.call("ReceiveMessage", QueueUrl=url)["Messages"]
    assert mine["MessageId"] == yours["MessageId"]
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    assert [call["fault"] for call in calls(client)] == [None, None, "duplicate", None, None]


def test_an_early_expiry_ends_the_visibility_of_what_is_received(client: Client, url: str) -> None:
    plan(client, kind="early_expiry", seconds=5, times=1)
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    assert len(client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]) == 1
    client.control("POST", "clock", {"advance": 4})
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    client.control("POST", "clock", {"advance": 1})
    assert len(client.call("ReceiveMessage", QueueUrl=url)["Messages"]) == 1


def test_a_false_empty_answers_nothing_though_there_is_something(client: Client, url: str) -> None:
    plan(client, kind="false_empty", times=2)
    assert client.call("ReceiveMessage", QueueUrl=url) == {}
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    assert [client.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20) for _ in range(2)] == [{}, {}]
    assert client.call("ReceiveMessage", QueueUrl=url)["Messages"][0]["Body"] == "x"
    assert [call["fault"] for call in calls(client)][-3:] == ["false_empty", "false_empty", None]


def test_a_partial_failure_strikes_the_told_entries_only(client: Client, url: str) -> None:
    plan(client, kind="partial", action="SendMessageBatch", code="InternalError", positions=[0, 2, 9], times=1)
    entries = [{"Id": name, "MessageBody": name} for name in "abc"] + [{"Id": "bad", "MessageBody": "\x01"}]
    answer = client.call("SendMessageBatch", QueueUrl=url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["b"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("a", "InternalError", False),
        ("c", "InternalError", False),
        ("bad", "InvalidMessageContents", True),
    ]
    received = client.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in received] == ["b"]


def test_a_partial_failure_may_strike_every_entry(client: Client, url: str) -> None:
    plan(client, kind="partial", positions=[0], code="KmsThrottled")
    answer = client.call("SendMessageBatch", QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "x"}])
    assert [entry["Code"] for entry in answer["Failed"]] == ["KMS.ThrottlingException"]
    assert "Successful" not in answer
    assert client.call("ReceiveMessage", QueueUrl=url) == {}


def test_an_unusable_plan_is_a_400_with_the_cure(client: Client) -> None:
    client.write(b"PUT /_sandbox/faults HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    assert client.read() == (400, {"error": "A fault plan is a list of faults."})
    client.write(b"PUT /_sandbox/faults HTTP/1.1\r\nContent-Length: 2\r\n\r\n{]")
    assert client.read() == (400, {"error": "The body is not JSON; JSON has no NaN and no Infinity either."})
