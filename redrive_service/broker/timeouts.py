"""All timeouts and pauses of the SQS transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

FASTEST_POLL = 0.1  # seconds between polls; 0 would mean no pause


class TimeoutsAreInvalid(ValueError):
    """The transport option `timeouts` has an unknown name, or a value that is not above zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The timeouts and pauses of one worker, in seconds.

    With the defaults, a worker receives tasks again within 45 s after SQS has recovered. A hanging receive is aborted
    after `20 + receive_margin` seconds. The next receive begins at most `longest_pause` seconds later.
    """

    connect: float = 3.0
    call_read: float = 5.0
    """Timeout of all calls except receives. It is short, because these calls block kombu's event loop."""
    call_attempts: int = 2
    """A call lasts at most `call_attempts * (connect + call_read)`, plus botocore's pause between the attempts."""
    receive_margin: float = 10.0
    """A receive is aborted this long after the end of its long poll, which lasts up to 20 s."""
    first_pause: float = 0.5
    """The pause after the first failed receive; each further failure doubles it."""
    longest_pause: float = 10.0
    """The longest pause after failed receives. With it, a deleted queue causes only six calls a minute."""
    overdue_margin: float = 5.0
    """If a receive has no answer this long after its deadline, it counts as lost, and the queue is polled again."""

    @classmethod
    def of(cls, options: Mapping[str, float]) -> Self:
        """Return the timeouts that the transport option `timeouts` gives, with defaults for all other timeouts.

        Raises:
            TimeoutsAreInvalid: a name is unknown, or a value is not above zero.
        """
        known = {field.name for field in fields(cls)}
        for name, seconds in options.items():
            if name not in known:
                raise TimeoutsAreInvalid(
                    f"The option timeouts has no timeout named {name!r}. It has {', '.join(sorted(known))}."
                )
            if seconds <= 0:
                raise TimeoutsAreInvalid(f"The broker's timeout {name!r} is {seconds} s. Set it to more than 0.")
        return cls(**options)  # type: ignore[arg-type]  # `call_attempts` is the one whole number among the seconds

    def receive(self, *, long_poll: float) -> float:
        """Return the number of seconds after which a receive is aborted. SQS answers a long poll before that."""
        return long_poll + self.receive_margin

    def overdue(self, *, long_poll: float) -> float:
        """Return the number of seconds after which a receive counts as lost, if it was not aborted before."""
        return self.receive(long_poll=long_poll) + self.overdue_margin

    def pause(self, *, failures_in_a_row: int) -> float:
        """Return the number of seconds until the next receive after failures in a row.

        `first_pause` is doubled by each further failure, up to `longest_pause`. There is no jitter, because a few polls
        per minute cannot overload a queue.
        """
        doublings = min(failures_in_a_row - 1, 32)  # 2**32 is longer than any pause, and still a float
        return min(self.first_pause * 2.0**doublings, self.longest_pause)
