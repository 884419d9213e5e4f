"""The consumer of a cell's origin: fails each event as often as it is told to, and keeps the log for the judge."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import boto3


class Consumer(threading.Thread):
    """Receives batch after batch; what it fails is visible again at once, so that SQS buries it.

    Attributes:
        log: a line for each message, as the judge reads it.
    """

    def __init__(self, url: str, failures: Mapping[str, int]) -> None:
        super().__init__(name="consumer")
        self.log: list[dict[str, Any]] = []
        self._url, self._failures = url, failures
        self._failed: Counter[str] = Counter()
        self._over = threading.Event()

    def run(self) -> None:
        sqs: Any = boto3.client("sqs")
        while not self._over.is_set():
            found = sqs.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=0, MessageAttributeNames=["event"]
            ).get("Messages", [])
            good = [one for one in found if self._handle(one)]
            if good:
                sqs.delete_message_batch(QueueUrl=self._url, Entries=_entries(good))
            if bad := [one for one in found if one not in good]:
                sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=_entries(bad, VisibilityTimeout=0))
            if not found:
                self._over.wait(0.1)

    def _handle(self, one: dict[str, Any]) -> bool:
        started = time.monotonic()
        event = one["MessageAttributes"]["event"]["StringValue"]
        good = self._failed[event] >= self._failures.get(event, 0)
        self._failed[event] += not good
        told = {"message_id": one["MessageId"], "outcome": "ok" if good else "failed"}
        self.log.append({**told, "started": started, "ended": time.monotonic()})
        return good

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def _entries(found: list[dict[str, Any]], **more: object) -> list[dict[str, Any]]:
    return [{"Id": str(place), "ReceiptHandle": one["ReceiptHandle"], **more} for place, one in enumerate(found)]
