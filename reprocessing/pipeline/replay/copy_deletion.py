"""Delete copies of finished letters from their DLQs while more letters are sent. A copy is a message in a DLQ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from reprocessing.gateways.aws.request_threads import run_beside
from reprocessing.gateways.sqs import delete
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies
from reprocessing.store.capture import capture_lease
from reprocessing.store.replay.settlement import Deletable


@dataclass(slots=True)
class CopyDeletion:
    """Deletes the copies of one slice (5 s of sending): `size` or more together, in another thread.

    If the process is killed, the sweep (`recover.py`) finds the copies by their finished letters, and deletes them.
    `dlqs`: known DLQs by id.
    """

    size: int
    dlqs: Mapping[int, DeadLetterQueue]
    _waiting: list[Deletable] = field(default_factory=list)
    _begun: Future[list[Deletable]] | None = None  # returns the copies that SQS deleted

    def add(self, some: Sequence[Deletable]) -> None:
        """Delete these copies later, together with others. This method does not wait for SQS."""
        self._waiting.extend(some)
        if self._begun and self._begun.done():
            self._record()
        if len(self._waiting) >= self.size and not self._begun:
            group, self._waiting = delete_copies.by_dlq(self._waiting, known=self.dlqs), []
            self._begun = run_beside(
                lambda: [copy for dlq, some in group for copy in delete_copies.ask_sqs(dlq, some, by=delete)]
            )

    def finish(self) -> None:
        """Delete all copies that are left. Those that cannot be deleted are left to the sweep."""
        self._record()
        if self._waiting:
            delete_copies.delete_from_dlqs(self._waiting, by=delete, known=self.dlqs)
            self._waiting.clear()

    def _record(self) -> None:
        if self._begun and (gone := self._begun.result()):
            capture_lease.mark_gone(gone)
        self._begun = None
