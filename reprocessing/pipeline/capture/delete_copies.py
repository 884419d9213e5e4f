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
    gone = delete_in_sqs(dlq, deletable, by=by)
    if gone:
        capture_lease.mark_gone(gone)
    return len(gone)


def delete_from_dlqs(
    deletable: Iterable[Deletable], *, by: Delete = delete, known: Mapping[int, DeadLetterQueue] = MappingProxyType({})
) -> None:
    """Delete copies from their DLQs. If a copy cannot be deleted, the next sweep (`recover.py`) tries again.

    `by`: the function that sends the requests. `known`: DLQs that the caller has loaded already, by id.
    """
    for dlq, some in copies_by_dlq(deletable, known=known):
        delete_from_dlq(dlq, some, by=by)


def copies_by_dlq(
    deletable: Iterable[Deletable], *, known: Mapping[int, DeadLetterQueue]
) -> list[tuple[DeadLetterQueue, list[Deletable]]]:
    """Group these copies by DLQ. Load the DLQs that are missing in `known` (by id)."""
    grouped: dict[int, list[Deletable]] = {}
    for copy in deletable:
        grouped.setdefault(copy.dlq_id, []).append(copy)
    missing = grouped.keys() - known.keys()
    dlqs = {**known, **(DeadLetterQueue.objects.in_bulk(missing) if missing else {})}
    return [(dlqs[pk], some) for pk, some in grouped.items()]


def delete_in_sqs(dlq: DeadLetterQueue, deletable: Sequence[Deletable], *, by: Delete = delete) -> list[Deletable]:
    """Delete copies from one DLQ, and return the copies that SQS deleted.

    Any thread may call this function: it does not use PostgreSQL. `by`: the function that sends the requests.
    """
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    done = by(address, {copy.message_id: copy.handle for copy in deletable})
    return [copy for copy in deletable if copy.message_id in done.gone]
