"""Loops that receive, send and delete messages with boto3, as simple scripts do. The service is compared with them."""

from __future__ import annotations

import http.client
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from benchmarks.drains.drain_plan import Plan

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH: Final = 10  #: letters of one SQS call


class Loop:
    """Threads that move letters from a DLQ to its source queue, or to an HTTP endpoint."""

    def __init__(self, plan: Plan, dlq: str, source: str, endpoint: str | None, threads: int) -> None:
        self._plan, self._dlq, self._source, self._endpoint = plan, dlq, source, endpoint
        self._threads = threads
        self._sqs: SQSClient = boto3.client("sqs", config=Config(max_pool_connections=threads))
        self._left = plan.loop_letters(threads)
        self._guard, self._done = threading.Lock(), threading.Event()
        self._ended = 0.0

    def letters_per_second(self) -> float:
        """Move all letters; return the letters per second, up to the deletion of the last letter."""
        letters, began = self._left, time.monotonic()
        workers = [threading.Thread(target=self._move) for _ in range(self._threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self._check(letters)
        return letters / (self._ended - began)

    def _move(self) -> None:
        connection = self._connection()
        while not self._done.is_set():
            moved = self._move_batch(connection)
            with self._guard:
                self._left -= moved
                if self._left <= 0 and not self._done.is_set():
                    self._ended = time.monotonic()
                    self._done.set()

    def _connection(self) -> http.client.HTTPConnection | None:
        return http.client.HTTPConnection(urlsplit(self._endpoint).netloc) if self._endpoint else None

    def _move_batch(self, connection: http.client.HTTPConnection | None) -> int:
        found = self._sqs.receive_message(
            QueueUrl=self._dlq, MaxNumberOfMessages=BATCH, MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"], WaitTimeSeconds=1,
        ).get("Messages", [])  # fmt: skip
        if not found:
            return 0
        if connection:
            _post(connection, str(self._endpoint), found)
        else:
            self._send(found)
        receipts: list[Any] = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]} for number, message in enumerate(found)
        ]
        self._sqs.delete_message_batch(QueueUrl=self._dlq, Entries=receipts)
        return len(found)

    def _send(self, found: list[Any]) -> None:
        for first in range(0, len(found), self._plan.batch):
            some = found[first : first + self._plan.batch]
            self._sqs.send_message_batch(
                QueueUrl=self._source, Entries=[_copy(number, message) for number, message in enumerate(some)]
            )

    def _check(self, letters: int) -> None:
        counts = self._sqs.get_queue_attributes(QueueUrl=self._source, AttributeNames=["ApproximateNumberOfMessages"])
        arrived = int(counts["Attributes"]["ApproximateNumberOfMessages"])
        if arrived != (0 if self._endpoint else letters):
            raise SystemExit(f"A loop moved {letters:,} letters, but {arrived:,} are in the source queue.")


def _copy(number: int, message: Any) -> Any:  # noqa: ANN401 - boto3's own shape
    told = message.get("Attributes", {})
    kept = {name: told[name] for name in ("MessageGroupId", "MessageDeduplicationId") if name in told}
    return {
        "Id": str(number), "MessageBody": message["Body"], "MessageAttributes": message["MessageAttributes"], **kept,
    }  # fmt: skip


def _post(connection: http.client.HTTPConnection, url: str, found: list[Any]) -> None:
    for message in found:
        connection.request("POST", urlsplit(url).path, message["Body"])
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.client.NO_CONTENT:
            raise SystemExit(f"The endpoint answered {answer.status}.")
