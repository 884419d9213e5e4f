"""Delete copies from a dlq, once what they became is committed."""

from __future__ import annotations

from collections.abc import Sequence

from reprocessing.models import DeadLetterQueue, captures
from reprocessing.models.settlement import Deletable
from reprocessing.sqs import QueueAddress, delete


def copies(dlq: DeadLetterQueue, deletable: Sequence[Deletable]) -> int:
    """Delete these copies, in tens, and remember which are gone: their number. The others stay to be deleted."""
    done = delete(QueueAddress(url=dlq.url, region=dlq.region), {one.message_id: one.handle for one in deletable})
    gone = [one for one in deletable if one.message_id in done.gone]
    if gone:
        captures.gone(gone)
    return len(gone)
