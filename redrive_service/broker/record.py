"""How receiving has gone in this process, by queue: for logs, probes and tests."""

from __future__ import annotations

import logging
from dataclasses import dataclass

logger = logging.getLogger("redrive.broker")


@dataclass(slots=True, kw_only=True)
class QueueRecord:
    """One queue's receives. Times are the monotonic clock's seconds; None is never."""

    queue: str
    failures: int = 0
    failures_in_a_row: int = 0
    last_failed_at: float | None = None
    last_answered_at: float | None = None

    def failed(self, *, now: float) -> int:
        """One more receive failed: how many in a row that makes."""
        self.failures += 1
        self.failures_in_a_row += 1
        self.last_failed_at = now
        return self.failures_in_a_row

    def answered(self, *, now: float) -> None:
        """SQS answered, be it with nothing: the row of failures is over."""
        self.last_answered_at = now
        if self.failures_in_a_row:
            logger.warning(
                "redrive.broker.receive_recovered queue=%s after=%d failures", self.queue, self.failures_in_a_row
            )
            self.failures_in_a_row = 0


_RECORDS: dict[str, QueueRecord] = {}


def record_of(queue: str) -> QueueRecord:
    """This process's record of `queue`. One worker process has one consumer, so nobody else writes it."""
    return _RECORDS.setdefault(queue, QueueRecord(queue=queue))


def every_record() -> tuple[QueueRecord, ...]:
    """All records of this process, by the queues' names."""
    return tuple(_RECORDS[queue] for queue in sorted(_RECORDS))
