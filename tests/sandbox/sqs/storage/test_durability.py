"""What a server with a data folder keeps, seen from outside."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.sandbox.sqs.world import Server, running, url_of


@pytest.mark.soak
def test_kill_minus_nine_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    server = Server("--data", str(tmp_path))
    with server.connect() as client:
        client.call("CreateQueue", QueueName="q")
    answered: list[set[str]] = [set() for _ in range(4)]

    def send(mine: set[str]) -> None:
        try:
            with server.connect() as sender:
                for number in range(100_000):
                    mine.add(sender.call("SendMessage", QueueUrl=url_of("q"), MessageBody=str(number))["MessageId"])
        except OSError:
            pass  # the server was killed

    senders = [threading.Thread(target=send, args=[mine]) for mine in answered]
    for sender in senders:
        sender.start()
    with server.connect() as client:
        while sum(map(len, answered)) < 400:
            client.control("GET", "health")
    server.kill()
    for sender in senders:
        sender.join()
    found = set()
    with running("--data", str(tmp_path)) as again, again.connect() as client:
        wanted = {"QueueUrl": url_of("q"), "MaxNumberOfMessages": 10}
        while messages := client.call("ReceiveMessage", **wanted).get("Messages"):
            found |= {message["MessageId"] for message in messages}
    missing = set().union(*answered) - found
    assert missing == set()


def test_a_restarted_server_goes_on_where_it_was(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        client.call("CreateQueue", QueueName="q")
        client.control("POST", "clock", {"advance": 1_000_000})
        client.call("SendMessage", QueueUrl=url_of("q"), MessageBody="x")
        (held,) = client.call("ReceiveMessage", QueueUrl=url_of("q"), VisibilityTimeout=600)["Messages"]
        before = client.control("POST", "clock", {"advance": 0})["now"]
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        assert client.control("POST", "clock", {"advance": 0})["now"] >= before
        assert client.call("ReceiveMessage", QueueUrl=url_of("q")) == {}
        assert client.call("DeleteMessage", QueueUrl=url_of("q"), ReceiptHandle=held["ReceiptHandle"]) == {}
        client.control("POST", "clock", {"advance": 600})
        assert client.call("ReceiveMessage", QueueUrl=url_of("q")) == {}


@pytest.mark.soak
def test_time_that_was_told_to_pass_has_passed(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        before = client.control("POST", "clock", {"advance": 1_000_000})["now"]
        server.kill()
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        assert client.control("POST", "clock", {"advance": 0})["now"] >= before


@pytest.mark.soak
def test_what_a_waiting_receive_took_and_what_faults_changed_is_kept(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)) as server, server.connect() as client, server.connect() as waiter:
        client.call("CreateQueue", QueueName="q")
        waiter.post("ReceiveMessage", QueueUrl=url_of("q"), WaitTimeSeconds=20, VisibilityTimeout=600)
        assert waiter.is_silent(0.1)
        client.call("SendMessage", QueueUrl=url_of("q"), MessageBody="waited for")
        assert len(waiter.read()[1]["Messages"]) == 1
        client.control("PUT", "faults", [{"kind": "partial", "positions": [0]}, {"kind": "duplicate"}])
        entries = [{"Id": "1", "MessageBody": "struck"}, {"Id": "2", "MessageBody": "spared"}]
        client.call("SendMessageBatch", QueueUrl=url_of("q"), Entries=entries)
        assert len(client.call("ReceiveMessage", QueueUrl=url_of("q"), VisibilityTimeout=600)["Messages"]) == 1
        server.kill()
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        received = client.call("ReceiveMessage", QueueUrl=url_of("q"), MaxNumberOfMessages=10)["Messages"]
        assert [message["Body"] for message in received] == ["spared"]


@pytest.mark.soak
def test_a_reset_is_kept(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        client.call("CreateQueue", QueueName="q")
        client.control("POST", "reset")
        client.call("CreateQueue", QueueName="r")
        server.kill()
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        assert client.call("ListQueues")["QueueUrls"] == [url_of("r")]


def test_looking_and_finding_nothing_writes_nothing(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)) as server, server.connect() as client:
        client.call("CreateQueue", QueueName="q")
        client.call("SendMessage", QueueUrl=url_of("q"), MessageBody="x")
        (held,) = client.call("ReceiveMessage", QueueUrl=url_of("q"))["Messages"]
        client.call("DeleteMessage", QueueUrl=url_of("q"), ReceiptHandle=held["ReceiptHandle"])
        (journal,) = tmp_path.glob("journal-*")
        size = journal.stat().st_size
        client.call("DeleteMessage", QueueUrl=url_of("q"), ReceiptHandle=held["ReceiptHandle"])
        client.call("ReceiveMessage", QueueUrl=url_of("q"))
        client.call("GetQueueAttributes", QueueUrl=url_of("q"), AttributeNames=["All"])
        client.call("ListQueues")
        client.call("SendMessage", QueueUrl=url_of("q"))
        client.call("CreateQueue", QueueName="q")
        assert journal.stat().st_size == size


@pytest.mark.soak
def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with running("--data", str(tmp_path)):
        with pytest.raises(AssertionError) as refusal:
            Server("--data", str(tmp_path))
        sentence = f"Another local SQS is using {tmp_path}. Stop the other SQS, or name another folder.\n"
        assert refusal.value.args[0] == ("", ("", sentence))


def test_a_folder_that_cannot_be_made_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AssertionError) as refusal:
        Server("--data", str(tmp_path / "file"))
    assert refusal.value.args[0] == ("", ("", f"{tmp_path / 'file'} cannot be used: File exists.\n"))


def test_sigterm_ends_the_server_cleanly(tmp_path: Path) -> None:
    server = Server("--data", str(tmp_path))
    assert server.stop() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-00000001", "lock", "snapshot-00000001"]
