"""Count how often AWS throttled this process, for each service."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any, Final

#: Error codes for throttling: AWS refused the request without executing it, with any HTTP status.
THROTTLED: Final = frozenset({
    "KMS.ThrottlingException", "KmsThrottled", "RequestLimitExceeded", "RequestThrottled", "Throttling", "Throttled",
    "ThrottledException", "ThrottlingException", "TooManyRequestsException",
})  # fmt: skip


class _Count:
    """How many requests of one process AWS throttled, for each service."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n: Counter[str] = Counter()

    def note(self, service: str) -> None:
        with self._lock:
            self._n[service] += 1

    def take(self) -> Counter[str]:
        with self._lock:
            taken, self._n = self._n, Counter()
        return taken


_count = _Count()


def without_sqs_prefix(code: str) -> str:
    """Return an error code, without the prefix (AWS.SimpleQueueService.) of some SQS codes."""
    return code.rpartition("AWS.SimpleQueueService.")[2]


def count_throttling(made: Any, service: str) -> None:  # noqa: ANN401 - any of boto3's clients
    """Count the throttled requests of this boto3 client from now on, under the name `service`."""

    def count_if_throttled(*, parsed: dict[str, Any], **_: object) -> None:
        if without_sqs_prefix(str(parsed.get("Error", {}).get("Code", ""))) in THROTTLED:
            _count.note(service)

    made.meta.events.register("after-call", count_if_throttled)


def take_throttle_counts() -> Counter[str]:
    """Return how many requests of this process AWS throttled, by service, since this function was last called."""
    return _count.take()


def _forget() -> None:
    global _count  # noqa: PLW0603  one count for each process
    _count = _Count()


os.register_at_fork(after_in_child=_forget)
