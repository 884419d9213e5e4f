"""Tell a redrive loop: a DLQ that refills with the messages that were just redriven out of it.

A message that fails again comes back under the mark it carries, and uses up its attempts. A consumer that copies what
it cannot process into the DLQ, or publishes it anew, takes the mark off: each copy is a new message. Equal bodies alone
prove nothing (heartbeats are equal), so a loop takes several different bodies, each of which went round more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: The newest messages of a DLQ that are looked at.
SAMPLE: Final = 50
#: Different bodies that have to go round.
DIFFERENT: Final = 10
#: How often each was delivered before it came again.
ROUNDS: Final = 2
#: The share of the sample that has to go round.
SHARE: Final = 0.8
#: Seconds back in which the rounds are counted.
WITHIN: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class NewestMessages:
    """What the newest messages of a DLQ are.

    Attributes:
        seen: how many were looked at, up to `SAMPLE`.
        again: of these, how many have a body that was delivered `ROUNDS` times within `WITHIN` seconds before.
        different: bodies among those.
    """

    seen: int
    again: int
    different: int


def redrive_loop(newest: NewestMessages) -> str | None:
    """Return why a DLQ refills as fast as it drains; None: it does not."""
    if newest.different < DIFFERENT or newest.again < SHARE * newest.seen:
        return None
    return (
        f"The DLQ refills with what is redriven: {newest.again} of its newest {newest.seen} messages were delivered "
        f"{ROUNDS} times or more within the last hour, and came again as new messages."
    )
