"""One queue, as SQS describes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.gateways.sqs import QueueAddress, QueueFacts, describe
from reprocessing.models.target import MAX_SECONDS


@dataclass(frozen=True, slots=True)
class DescribedQueue:
    """A queue's address and attributes."""

    address: QueueAddress
    facts: QueueFacts

    @property
    def window(self) -> timedelta:
        """Return how long a message that fails can take to reach the queue's DLQ.

        SQS moves the message at the first receive after maxReceiveCount receives. Each receive hides it for the
        visibility timeout, and the consumer may be busy for as long before its next receive. The longest is 14 days.
        """
        receives = self.facts.redrive.max_receives if self.facts.redrive else 1
        return min(max(self.facts.visibility * (receives + 1), timedelta(seconds=1)), timedelta(seconds=MAX_SECONDS))


def describe_queue(address: QueueAddress) -> DescribedQueue:
    """Ask SQS for the queue's attributes.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    return DescribedQueue(address, describe(address))
