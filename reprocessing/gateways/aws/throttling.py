"""How often AWS throttled this process: counted at every client, whoever asked and whatever became of it."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Any, Final

#: It turned a request away before it looked at it, whatever the status.
THROTTLED: Final = frozenset({
    "KMS.ThrottlingException", "KmsThrottled", "RequestLimitExceeded", "RequestThrottled", "Throttling", "Throttled",
    "ThrottledException", "ThrottlingException", "TooManyRequestsException",
})  # fmt: skip


class _Count:
    """Of one process."""

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
    """A refusal's name, without the prefix that some of SQS's have."""
    return code.rpartition("AWS.SimpleQueueService.")[2]


def count_throttling(made: Any, service: str) -> None:  # noqa: ANN401 - any of boto3's clients
    """Count what this client is throttled."""

    def hear(*, parsed: dict[str, Any], **_: object) -> None:
        if without_sqs_prefix(str(parsed.get("Error", {}).get("Code", ""))) in THROTTLED:
            _count.note(service)

    made.meta.events.register("after-call", hear)


def take_throttle_counts() -> Counter[str]:
    """Throttled requests by service, since this was last asked in this process."""
    return _count.take()


def _forget() -> None:
    global _count  # noqa: PLW0603  one per process is what it is for
    _count = _Count()


os.register_at_fork(after_in_child=_forget)
