"""Delete copies of finished letters from their DLQs while more letters are sent. A copy is a message in a DLQ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from reprocessing.gateways.aws.request_threads import run_beside
from reprocessing.gateways.sqs import delete
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies
from reprocessing.store.capture import capture_lease
from reprocessing.store.replay.settlement import Deletable


@dataclass(slots=True)
class CopyDeletion:
    """Deletes the copies of one slice (5 s of sending): many together, in another thread; the rest in `finish`.

    If the slice fails or its process is killed, the sweep (`recover.py`) finds the copies by their finished letters,
    and deletes them.

    Attributes:
        size: a deletion begins when at least `size` copies wait, and no deletion is in progress.
        dlqs: known DLQs by id.
        renew: renews the leases of lanes with open requests. `add` calls it every `every` seconds while it blocks.
    """

    size: int
    dlqs: Mapping[int, DeadLetterQueue]
    renew: Callable[[], None]
    every: float
    _waiting: list[Deletable] = field(default_factory=list)
    _in_progress: Future[list[Deletable]] | None = None  # returns the copies that SQS deleted

    def add(self, copies: Sequence[Deletable]) -> None:
        """Delete these copies later, together with others.

        If 2 * `size` copies are waiting, block until the deletion in progress has ended.
        """
        self._waiting.extend(copies)
        if self._in_progress:
            while len(self._waiting) >= 2 * self.size and not self._in_progress.done():
                self.renew()
                wait([self._in_progress], timeout=self.every)
            if self._in_progress.done():
                self._record()
        if len(self._waiting) >= self.size and not self._in_progress:
            by_dlq, self._waiting = delete_copies.copies_by_dlq(self._waiting, known=self.dlqs), []
            self._in_progress = run_beside(
                lambda: [gone for dlq, some in by_dlq for gone in delete_copies.delete_in_sqs(dlq, some, by=delete)]
            )

    def finish(self) -> None:
        """Delete the remaining copies, and wait for SQS. The sweep (`recover.py`) deletes what SQS did not delete.

        Call this after `Sender.end`: it renews no leases.
        """
        self._record()
        if self._waiting:
            delete_copies.delete_from_dlqs(self._waiting, by=delete, known=self.dlqs)
            self._waiting.clear()

    def _record(self) -> None:
        in_progress, self._in_progress = self._in_progress, None
        if in_progress and (gone := in_progress.result()):
            capture_lease.mark_gone(gone)
