"""How long the broker waits, and for what. Every timeout and pause of the transport is defined here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

FASTEST_POLL = 0.1  # seconds; kombu polls without any pause when it is 0


class PatienceIsMistaken(ValueError):
    """A configured wait is unknown or not above zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The waits of one worker, in seconds.

    The defaults keep one promise: a worker consumes again within 45 s of the last fault. A hanging receive is aborted
    up after `20 + receive_margin`, and the pause before the next is at most `longest_pause`: 40 s together.
    """

    connect: float = 3.0
    call_read: float = 5.0
    """For every call but a receive. kombu deletes and extends in the event loop, which is blocked meanwhile."""
    call_attempts: int = 2
    """A call lasts at most `call_attempts * (connect + call_read)`, and botocore's pause between, when SQS is down."""
    receive_margin: float = 10.0
    """Added to the long poll, which SQS itself keeps open for up to 20 s."""
    first_pause: float = 0.5
    longest_pause: float = 10.0
    """Low enough to recover soon, high enough that a deleted queue causes only six calls a minute."""
    overdue_margin: float = 5.0
    """Added to a receive's own deadline: after that, no answer is expected and the queue is polled again."""

    @classmethod
    def of(cls, options: Mapping[str, float]) -> Self:
        """Return the transport option `timeouts`. PatienceIsMistaken: a wait is unknown, or not above zero."""
        known = {field.name for field in fields(cls)}
        for name, seconds in options.items():
            if name not in known:
                raise PatienceIsMistaken(
                    f"The broker knows no wait named {name!r}. It knows {', '.join(sorted(known))}."
                )
            if seconds <= 0:
                raise PatienceIsMistaken(f"The broker's wait {name!r} is {seconds}. Give it seconds above zero.")
        return cls(**options)  # type: ignore[arg-type]  # `call_attempts` is the one whole number among the seconds

    def receive(self, *, long_poll: float) -> float:
        """Return seconds after which a receive is aborted. Always longer than SQS may keep it open."""
        return long_poll + self.receive_margin

    def overdue(self, *, long_poll: float) -> float:
        """Return seconds after which a receive that was not aborted in time is considered lost."""
        return self.receive(long_poll=long_poll) + self.overdue_margin

    def pause(self, *, failures_in_a_row: int) -> float:
        """Return seconds before the next receive: doubling from the first pause up to the longest.

        No jitter: workers poll a failing queue only a few times a minute, so they cannot overload it.
        """
        doublings = min(failures_in_a_row - 1, 32)  # 2**32 is past any bound and still a float
        return min(self.first_pause * 2.0**doublings, self.longest_pause)
