"""Delete copies from a dlq, once what they became is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DeadLetterQueue
from reprocessing.store.capture import capture_lease
from reprocessing.store.replay.settlement import Deletable

Delete = Callable[[QueueAddress, Mapping[str, str]], Deleted]


def copies(dlq: DeadLetterQueue, deletable: Sequence[Deletable], *, by: Delete = delete) -> int:
    """Delete these copies, in tens, and remember which are gone: their number. The others stay to be deleted."""
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    done = by(address, {one.message_id: one.handle for one in deletable})
    gone = [one for one in deletable if one.message_id in done.gone]
    if gone:
        capture_lease.gone(gone)
    return len(gone)


def everywhere(
    deletable: Iterable[Deletable], *, by: Delete = delete, known: Mapping[int, DeadLetterQueue] = MappingProxyType({})
) -> None:
    """Delete copies from their dlqs; one that stays is swept up by its dlq's next capture.

    Args:
        deletable: the copies.
        by: asks SQS: whoever has leases to renew does that meanwhile.
        known: dlqs that need not be looked up.
    """
    by_dlq: dict[int, list[Deletable]] = {}
    for copy in deletable:
        by_dlq.setdefault(copy.dlq_id, []).append(copy)
    missing = by_dlq.keys() - known.keys()
    dlqs = {**known, **(DeadLetterQueue.objects.in_bulk(missing) if missing else {})}
    for pk, some in by_dlq.items():
        copies(dlqs[pk], some, by=by)
