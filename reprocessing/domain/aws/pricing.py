"""Compute what SQS charges for a drain, for AWS's native redrive, and for polling.

The prices are those of AWS's public list (https://aws.amazon.com/sqs/pricing/); the settings PRICE_STANDARD and
PRICE_FIFO replace them. SQS charges an API call as one request for each started 64 KiB of its payload. For k
calls with B bytes in all, and U = 64 KiB, the number c of charged requests has these bounds:

    max(k, ceil(B / U)) <= c <= k + floor(B / U)

The number of calls is not known in advance, so each result is a lower and an upper bound. Free tier, volume discounts
and data transfer are not included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: SQS charges one request for each 64 KiB of a call.
BYTES_PER_REQUEST: Final = 65_536
#: Max messages of one SQS call, and max bytes of one call.
MESSAGES_PER_CALL: Final = 10
BYTES_PER_CALL: Final = 1_048_576
#: US dollars for a million requests to standard and to FIFO queues in us-east-1, June 2026.
STANDARD: Final = 0.40
FIFO: Final = 0.50
#: Most bytes of the attributes that the service adds to a message.
MARKS_BYTES: Final = 1_024
#: A DLQ counts as empty when each receiver has had this many empty receives.
EMPTY_RECEIVES: Final = 3
DAY: Final = 86_400.0
_MILLION: Final = 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million requests to standard and to FIFO queues."""

    standard: float = STANDARD
    fifo: float = FIFO

    def of(self, *, fifo: bool) -> float:
        """Return the price in US dollars of one request to a FIFO queue (`fifo`) or a standard queue."""
        return (self.fifo if fifo else self.standard) / _MILLION


@dataclass(frozen=True, slots=True)
class Cost:
    """The least and the most requests, and their price in US dollars."""

    least: int = 0
    most: int = 0
    least_price: float = 0.0
    most_price: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.least + other.least, self.most + other.most, self.least_price + other.least_price,
            self.most_price + other.most_price,
        )  # fmt: skip

    @classmethod
    def of(cls, least: int, most: int, *, each: float) -> Cost:
        """Return the cost of `least` to `most` requests, at `each` US dollars for one request."""
        return cls(least, most, least * each, most * each)


def charged_requests(size: int) -> int:
    """Return how many requests SQS charges for one call with a payload of `size` bytes."""
    return max(1, -(-size // BYTES_PER_REQUEST))


def _calls(messages: int, size: int, *, one_by_one: int) -> tuple[int, int]:
    """Return the least and the most requests that SQS charges to send or receive messages of `size` bytes in all.

    `one_by_one`: how many of the messages need a call each, because no two of them can share a call.
    """
    if not messages:
        return 0, 0
    least = max(-(-messages // MESSAGES_PER_CALL), -(-size // BYTES_PER_CALL), one_by_one)
    return max(least, -(-size // BYTES_PER_REQUEST)), messages + size // BYTES_PER_REQUEST


def cost_of_sends(letters: int, size: int, *, longest: int, each: float) -> Cost:
    """Return the cost of sending letters once. `size`: bytes of all letters. `each`: US dollars for one request.

    `longest`: how many letters the longest lane has. Letters of one lane (one ordering key) are never sent in the same
    call, so at least `longest` calls are needed.
    """
    least, _ = _calls(letters, size, one_by_one=longest)
    _, most = _calls(letters, size + letters * MARKS_BYTES, one_by_one=longest)
    return Cost.of(least, most, each=each)


def cost_of_deletes(copies: int, *, each: float) -> Cost:
    """Return the cost of deleting `copies` messages from a DLQ, at `each` US dollars for one request."""
    return Cost.of(-(-copies // MESSAGES_PER_CALL), copies, each=each)


def cost_of_capture(messages: int, size: int, *, receivers: int, each: float) -> Cost:
    """Return the cost of capturing a DLQ with `messages` of `size` bytes in all, until the DLQ is empty.

    A receive is empty if it returns no message. The lower bound assumes full receives, and three empty receives
    (`EMPTY_RECEIVES`) by each receiver at the end. The upper bound assumes one message for each receive, and six empty
    receives by each receiver.
    """
    least, most = _calls(messages, size, one_by_one=0)
    silence = EMPTY_RECEIVES * receivers
    return Cost.of(1 + least + silence, 2 + most + 2 * silence, each=each)


def cost_of_native_redrive(messages: int, *, each: float) -> Cost:
    """Return the cost of AWS's native redrive, at `each` US dollars for one request.

    AWS receives, sends and deletes messages in batches of 1 to 10.
    """
    return Cost.of(1 + 3 * -(-messages // MESSAGES_PER_CALL), 1 + 3 * messages, each=each)


@dataclass(frozen=True, slots=True)
class IdleLoad:
    """The load on SQS while no message fails.

    Attributes:
        polls: polls per second of all DLQs together.
        ticks: how many ticks (tasks that start the service's due work) Celery beat sends per second.
        sweeps: recovery tasks per second, which continue work that stopped workers left behind.
        dlqs_per_task: most DLQs that one task polls.
        queues: number of the service's own queues.
        long_poll: seconds of one long poll.
        workers: number of workers, each of which long-polls each of the service's own queues.
    """

    polls: float
    ticks: float = 0.5
    sweeps: float = 0.1
    dlqs_per_task: int = 20
    queues: int = 3
    long_poll: float = 20.0
    workers: int = 1

    @property
    def requests(self) -> float:
        """Return the number of SQS requests per second.

        A poll of a DLQ is one request. A task is three requests, because its message is sent, received and deleted.
        One task does several polls that are due at the same tick. Long polls of the service's own queues are added.
        """
        tasks = self.ticks + self.sweeps + min(self.polls, max(self.ticks, self.polls / self.dlqs_per_task))
        return self.polls + 3 * tasks + self.workers * self.queues / self.long_poll

    def cost_of_day(self, *, each: float) -> Cost:
        """Return the cost of a day, at `each` US dollars for one request."""
        n = round(self.requests * DAY)
        return Cost.of(n, n, each=each)


def in_words(cost: Cost) -> str:
    """Return a cost in words, such as "3 to 21 AWS requests, less than $0.01"."""
    requests = "AWS request" if cost.least == cost.most == 1 else "AWS requests"
    return f"{count_in_words(cost)} {requests}, {price_in_words(cost)}"


def count_in_words(cost: Cost) -> str:
    """Return the number of requests in words, such as "3 to 21"."""
    return f"{cost.least:,}" if cost.least == cost.most else f"{cost.least:,} to {cost.most:,}"


def price_in_words(cost: Cost) -> str:
    """Return the price in words, such as "less than $0.01" or "$0.40 to $4.00"."""
    least, most = _dollars(cost.least_price), _dollars(cost.most_price)
    return most if least == most else f"{least} to {most}"


def _dollars(amount: float) -> str:
    return "less than $0.01" if amount < 0.01 else f"${amount:,.2f}"  # noqa: PLR2004  # a cent
