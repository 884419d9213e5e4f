"""Movers without a memory: loops that receive, send and delete with boto3, as scripts do."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH: Final = 10


def letters_per_second(dlq: str, source: str, letters: int, *, threads: int) -> float:
    """Move this many letters from one queue to another with so many threads; return letters per second."""
    sqs = boto3.client("sqs", config=Config(max_pool_connections=threads))
    left = threading.Semaphore(letters // BATCH)

    def move() -> None:
        while left.acquire(blocking=False):
            _move_batch(sqs, dlq, source)

    began = time.monotonic()
    workers = [threading.Thread(target=move) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return letters / (time.monotonic() - began)


def _move_batch(sqs: SQSClient, dlq: str, source: str) -> None:
    found = sqs.receive_message(
        QueueUrl=dlq, MaxNumberOfMessages=BATCH, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    )["Messages"]
    copies: list[Any] = [
        {"Id": str(number), "MessageBody": message["Body"], "MessageAttributes": message["MessageAttributes"]}
        for number, message in enumerate(found)
    ]
    sqs.send_message_batch(QueueUrl=source, Entries=copies)
    receipts: list[Any] = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]} for number, message in enumerate(found)
    ]
    sqs.delete_message_batch(QueueUrl=dlq, Entries=receipts)
