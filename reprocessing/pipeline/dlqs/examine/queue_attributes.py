"""Read a queue's attributes from SQS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.message.arn import read
from reprocessing.gateways.sqs import QueueAddress, QueueFacts, describe, locate
from reprocessing.models.target import MAX_SECONDS


@dataclass(frozen=True, slots=True)
class DescribedQueue:
    """A queue's address, and its attributes as SQS returned them."""

    address: QueueAddress
    facts: QueueFacts

    @property
    def window(self) -> timedelta:
        """Return how long a message that fails again can take to reach the queue's DLQ; at most 14 days.

        SQS moves the message at the first receive after maxReceiveCount receives. Each receive hides the message for
        the visibility timeout, and the consumer may be busy for another visibility timeout before its next receive.
        """
        receives = self.facts.redrive.max_receives if self.facts.redrive else 1
        return min(max(self.facts.visibility * (receives + 1), timedelta(seconds=1)), timedelta(seconds=MAX_SECONDS))


def describe_queue(address: QueueAddress) -> DescribedQueue:
    """Return the queue at this address, with its attributes from SQS.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    return DescribedQueue(address, describe(address))


def queue_address(text: str, role: str = "") -> QueueAddress:
    """Return the address of the queue with this URL or ARN. For an ARN, SQS is asked for the URL.

    Raises:
        QueueUnreachable: the text is neither a URL nor the ARN of a queue, or SQS did not return the URL.
    """
    return QueueAddress.of(text, role) if read(text) is None else locate(text, role)
