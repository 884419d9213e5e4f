"""The process of our own SQS: what it is started with, what it remembers, how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.conftest import fresh_name
from tests.contract.endpoints import local_server, sqs_client
from tests.contract.queues import Queue

if TYPE_CHECKING:
    from pathlib import Path


def test_it_forgets_without_a_folder_and_remembers_with_one(tmp_path: Path) -> None:
    name, arguments = fresh_name(), ("--data", str(tmp_path / "data"))
    with local_server(tmp_path, *arguments) as url, sqs_client(url) as client:
        queue = Queue(client, client.create_queue(QueueName=name, Attributes={"DelaySeconds": "7"})["QueueUrl"])
        message_id = queue.send("kept", DelaySeconds=0)["MessageId"]
        gone = queue.send("deleted", DelaySeconds=0)["MessageId"]
        queue.delete(next(message for message in queue.receive(VisibilityTimeout=0) if message["MessageId"] == gone))
    with local_server(tmp_path, *arguments) as url, sqs_client(url) as client:
        queue = Queue(client, client.get_queue_url(QueueName=name)["QueueUrl"])
        assert queue.attributes("DelaySeconds") == {"DelaySeconds": "7"}
        assert [(message["MessageId"], message["Body"]) for message in queue.receive()] == [(message_id, "kept")]
    with local_server(tmp_path) as url, sqs_client(url) as client:
        assert client.list_queues().get("QueueUrls", []) == []


def test_its_region_is_the_one_it_was_started_with(tmp_path: Path) -> None:
    with local_server(tmp_path, "--region", "eu-central-1") as url, sqs_client(url) as client:
        queue = Queue(client, client.create_queue(QueueName="there")["QueueUrl"])
        assert queue.arn == "arn:aws:sqs:eu-central-1:000000000000:there"
