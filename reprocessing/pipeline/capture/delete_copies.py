"""Delete copies from SQS, after the letters' states are committed. A copy is a letter's message in the DLQ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DeadLetterQueue
from reprocessing.store.capture import capture_lease
from reprocessing.store.replay.settlement import Deletable

Delete = Callable[[QueueAddress, Mapping[str, str]], Deleted]


def delete_from_dlq(dlq: DeadLetterQueue, deletable: Sequence[Deletable], *, by: Delete = delete) -> int:
    """Delete copies from one DLQ, ten in a request; return how many were deleted.

    If a copy cannot be deleted, the next sweep (`recover.py`) tries again. `by`: the function that sends the requests.
    """
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    done = by(address, {copy.message_id: copy.handle for copy in deletable})
    gone = [copy for copy in deletable if copy.message_id in done.gone]
    if gone:
        capture_lease.mark_gone(gone)
    return len(gone)


def delete_from_dlqs(
    deletable: Iterable[Deletable], *, by: Delete = delete, known: Mapping[int, DeadLetterQueue] = MappingProxyType({})
) -> None:
    """Delete copies from their DLQs. If a copy cannot be deleted, the next sweep (`recover.py`) tries again.

    `by`: the function that sends the requests. `known`: DLQs that the caller has loaded already, by id.
    """
    by_dlq: dict[int, list[Deletable]] = {}
    for copy in deletable:
        by_dlq.setdefault(copy.dlq_id, []).append(copy)
    missing = by_dlq.keys() - known.keys()
    dlqs = {**known, **(DeadLetterQueue.objects.in_bulk(missing) if missing else {})}
    for pk, some in by_dlq.items():
        delete_from_dlq(dlqs[pk], some, by=by)
