"""One queue, as SQS describes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.gateways.sqs import QueueAddress, QueueFacts, describe
from reprocessing.models.target import FORTNIGHT


@dataclass(frozen=True, slots=True)
class Seen:
    """A queue's address, and what SQS says of it."""

    address: QueueAddress
    facts: QueueFacts

    @property
    def window(self) -> timedelta:
        """How long a letter that the consumer fails on can take from being received here to its dead-letter queue.

        SQS moves it with the receive after the last allowed one. Every receive may hide it for the visibility
        timeout; and the one that moves it comes when the consumer, busy with others for up to as long, asks again.
        After a fortnight SQS has dropped it.
        """
        receives = self.facts.redrive.max_receives if self.facts.redrive else 1
        return min(max(self.facts.visibility * (receives + 1), timedelta(seconds=1)), timedelta(seconds=FORTNIGHT))


def see(address: QueueAddress) -> Seen:
    """Ask SQS.

    Raises:
        QueueIsOutOfReach: it did not say.
    """
    return Seen(address, describe(address))
