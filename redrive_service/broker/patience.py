"""How long the broker waits, and for what. Every wait of the transport is one of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

FASTEST_POLL = 0.1  # seconds; kombu polls without any pause when told 0


class PatienceIsMistaken(ValueError):
    """A wait was configured that cannot be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The waits of one worker, in seconds.

    The defaults keep one promise: a worker consumes again within 45 s of the last fault. A receive that hangs is given
    up after `20 + receive_margin`, and the pause before the next is at most `longest_pause`: 40 s together.
    """

    connect: float = 3.0
    call_read: float = 5.0
    """For everything but a receive: kombu deletes and extends from the event loop, which stands still meanwhile."""
    call_attempts: int = 2
    """A call that finds SQS gone lasts at most `call_attempts * (connect + call_read)` and botocore's pause between."""
    receive_margin: float = 10.0
    """On top of the long poll, which SQS itself keeps open for up to 20 s."""
    first_pause: float = 0.5
    longest_pause: float = 10.0
    """Low enough to be back soon, high enough that a queue that is gone costs six calls a minute."""
    overdue_margin: float = 5.0
    """On top of a receive's own deadline: then its answer is no longer expected and the queue is polled again."""

    @classmethod
    def of(cls, options: Mapping[str, float]) -> Self:
        """Return the patience that the transport option `patience` asks for.

        Raises:
            PatienceIsMistaken: a wait is unknown, or is not above zero.
        """
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
        """Seconds after which a receive is given up. Always longer than SQS may keep it open."""
        return long_poll + self.receive_margin

    def overdue(self, *, long_poll: float) -> float:
        """Seconds after which a receive that should have been given up is taken for lost."""
        return self.receive(long_poll=long_poll) + self.overdue_margin

    def pause(self, *, failures_in_a_row: int) -> float:
        """Seconds before the next receive: doubling from the first pause, bounded by the longest.

        No dice: a fleet of workers polls a failing queue a few times a minute, which is no stampede.
        """
        doublings = min(failures_in_a_row - 1, 32)  # 2**32 is past any bound and still a float
        return min(self.first_pause * 2.0**doublings, self.longest_pause)
