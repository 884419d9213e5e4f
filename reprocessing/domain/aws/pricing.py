"""What SQS charges: for a drain, for AWS's own redrive, and for waiting.

AWS charges for requests (https://aws.amazon.com/sqs/pricing/): each API call is one, whatever it brings, and one whose
payload is larger is one for every 64 KiB of it, begun ones included. A batch of ten is one call. So with n messages of
B bytes in k calls, whose bytes are b_1 + … + b_k = B,

    charged = sum of max(1, ceil(b_i / U)), U = 64 KiB,   and so   max(k, ceil(B / U)) <= charged <= k + floor(B / U),

since ceil(x) <= floor(x) + 1 and floors add up to no more than the floor of the sum. How many calls k is not known
before: ten messages at most go into one, and a mebibyte, and letters of one lane go one after another. The bounds are
told, not a guess between them. Neither the free tier, nor what AWS takes off for billions, nor transfer is reckoned
with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Bytes that are charged as one request.
UNIT: Final = 65_536
#: Messages, and bytes, of one call at most.
BATCH: Final = 10
LARGEST: Final = 1_048_576
#: US dollars for a million requests in us-east-1, as pages that quote AWS's list had them in June 2026.
STANDARD: Final = 0.40
FIFO: Final = 0.50
#: Bytes that a letter gains on its way back, at the most: ids, names and types of the attributes that are added.
MARKS: Final = 1_024
#: Receives of each receiver that have to bring nothing before a dlq has run dry.
SILENCE: Final = 3
DAY: Final = 86_400.0
_MILLION: Final = 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million requests to standard and to FIFO queues."""

    standard: float = STANDARD
    fifo: float = FIFO

    def of(self, *, fifo: bool) -> float:
        """A request's, in US dollars."""
        return (self.fifo if fifo else self.standard) / _MILLION


@dataclass(frozen=True, slots=True)
class Cost:
    """Charged requests, from the least to the most, and US dollars alike."""

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
        """So many requests at this price."""
        return cls(least, most, least * each, most * each)


def charged(size: int) -> int:
    """What one call is charged as that carries so many bytes."""
    return max(1, -(-size // UNIT))


def _calls(messages: int, size: int, *, one_by_one: int) -> tuple[int, int]:
    """Charged requests that carry messages of so many bytes in all; `one_by_one` of them each in another call."""
    if not messages:
        return 0, 0
    least = max(-(-messages // BATCH), -(-size // LARGEST), one_by_one)
    return max(least, -(-size // UNIT)), messages + size // UNIT


def sends(letters: int, size: int, *, longest: int, each: float) -> Cost:
    """Sending letters once each, of so many bytes in all; the longest lane's go one after another.

    The most: every letter in a call of its own, with all that is added on its way back.
    """
    least, _ = _calls(letters, size, one_by_one=longest)
    _, most = _calls(letters, size + letters * MARKS, one_by_one=longest)
    return Cost.of(least, most, each=each)


def deletes(copies: int, *, each: float) -> Cost:
    """Deleting so many copies; a call for each at the most."""
    return Cost.of(-(-copies // BATCH), copies, each=each)


def receives(messages: int, size: int, *, receivers: int, each: float) -> Cost:
    """Capturing a dlq until it has run dry: its depth, its messages, and silence.

    The most: every receive brings one message, and each receiver's silence is broken by the last of them but one.
    """
    least, most = _calls(messages, size, one_by_one=0)
    silence = SILENCE * receivers
    return Cost.of(1 + least + silence, 2 + most + 2 * silence, each=each)


def native(messages: int, *, each: float) -> Cost:
    """AWS's own redrive: it says only that requests are charged; each message is received, sent and deleted.

    Its batches are its own. The least: tens of everything; the most: three requests for each message.
    """
    return Cost.of(1 + 3 * -(-messages // BATCH), 1 + 3 * messages, each=each)


@dataclass(frozen=True, slots=True)
class Polling:
    """What is asked of SQS while nothing dies.

    Attributes:
        turns: of all dlqs, a second: what each one's schedule says.
        ticks: of beat, a second.
        a_task: dlqs that one task sees to, at the most.
        queues: the service's own; each has one receive under way for every `long_poll` seconds at least.
        workers: that consume all of them.
    """

    turns: float
    ticks: float = 0.5
    sweeps: float = 0.1
    a_task: int = 20
    queues: int = 3
    long_poll: float = 20.0
    workers: int = 1

    @property
    def requests(self) -> float:
        """A second: a question for the depth each turn; and a send, a receive and a delete for each task.

        Turns that come due with one tick share a task where it takes them, so tasks of turns are no more than the
        ticks, and where a tick brings more than one task takes, than turns / a_task. Receives that bring a task do not
        last a long poll; those that bring nothing do.
        """
        tasks = self.ticks + self.sweeps + min(self.turns, max(self.ticks, self.turns / self.a_task))
        return self.turns + 3 * tasks + self.workers * self.queues / self.long_poll

    def a_day(self, *, each: float) -> Cost:
        """All of them are charged as one request each."""
        n = round(self.requests * DAY)
        return Cost.of(n, n, each=each)


def in_words(cost: Cost) -> str:
    """So many requests, for so much."""
    if cost.least == cost.most:
        requests = "1 AWS request" if cost.least == 1 else f"{cost.least:,} AWS requests"
        return f"{requests}, {_dollars(cost.least_price)}"
    prices = f"{_dollars(cost.least_price)} to {_dollars(cost.most_price)}"
    if _dollars(cost.least_price) == _dollars(cost.most_price):
        prices = _dollars(cost.most_price)
    return f"{cost.least:,} to {cost.most:,} AWS requests, {prices}"


def _dollars(amount: float) -> str:
    return "less than $0.01" if amount < 0.01 else f"${amount:,.2f}"  # noqa: PLR2004  # a cent
