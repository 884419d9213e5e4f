"""A consumer of a source queue that fails when it is told to, in a thread of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3

from tests.beside import Beside


class Consumer(Beside):
    """Receives, one batch after another, and deletes what `handles` says yes to. What it saw is in `seen`.

    What it fails is visible again at once, so that SQS buries it with the next receive.
    """

    def __init__(self, url: str, handles: Callable[[dict[str, Any]], bool]) -> None:
        super().__init__("consumer")
        self.url, self.handles = url, handles
        self.seen: list[tuple[str, bool]] = []
        self.done: list[dict[str, Any]] = []

    def go_on(self) -> None:
        sqs: Any = boto3.client("sqs")
        while not self.over.is_set():
            found = sqs.receive_message(
                QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            ).get("Messages", [])  # fmt: skip
            good = [one for one in found if self._is_well(one)]
            bad = [one for one in found if one not in good]
            self.done += good
            if good:
                sqs.delete_message_batch(QueueUrl=self.url, Entries=_entries(good))
            if bad:
                sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=_entries(bad, VisibilityTimeout=0))

    def _is_well(self, one: dict[str, Any]) -> bool:
        good = self.handles(one)
        self.seen.append((one["Body"], good))
        return good


def _entries(found: list[dict[str, Any]], **more: object) -> list[dict[str, Any]]:
    return [{"Id": str(place), "ReceiptHandle": one["ReceiptHandle"], **more} for place, one in enumerate(found)]
