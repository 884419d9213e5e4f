"""The consumer of a cell's source: fails each event as often as it is told to, and keeps the log for the judge."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.stories import consumer


class Consumer(consumer.Consumer):
    """Has a `log`: a line for each message, as the judge reads it."""

    def __init__(self, url: str, failures: Mapping[str, int]) -> None:
        super().__init__(url, self._handle)
        self.log: list[dict[str, Any]] = []
        self._failures = failures
        self._failed: Counter[str] = Counter()

    def _handle(self, one: dict[str, Any]) -> bool:
        started = time.monotonic()
        event = one["MessageAttributes"]["event"]["StringValue"]
        good = self._failed[event] >= self._failures.get(event, 0)
        self._failed[event] += not good
        told = {"message_id": one["MessageId"], "outcome": "ok" if good else "failed"}
        self.log.append({**told, "started": started, "ended": time.monotonic()})
        return good
