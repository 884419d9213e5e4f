"""Detect a redrive loop: a DLQ that refills with the messages that were just redriven from it.

A message that fails again is recognised by its `RedriveId` attribute, and uses up its attempts. But a consumer may copy
a message that it cannot process to the DLQ, or publish it again, without that attribute. Then each copy is a new
message. Equal bodies alone prove nothing, because heartbeat messages also have equal bodies. So a loop
is reported only if several different bodies each came back more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How many of a DLQ's newest messages are examined.
SAMPLE: Final = 50
#: For a redrive loop, at least so many different bodies must have come back.
DIFFERENT: Final = 10
#: A body counts as coming back if it was delivered at least so many times before.
ROUNDS: Final = 2
#: For a redrive loop, at least this share of the examined messages must have come back.
SHARE: Final = 0.8
#: Only deliveries of a body in the last so many seconds are counted.
WITHIN: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class NewestMessages:
    """Counts over the newest messages of a DLQ.

    Attributes:
        seen: how many messages were examined, up to 50 (`SAMPLE`).
        again: how many of them have a body that was delivered at least twice (`ROUNDS`) in the hour before.
        different: how many different bodies the messages counted by `again` have.
    """

    seen: int
    again: int
    different: int


def redrive_loop(newest: NewestMessages) -> str | None:
    """Return a sentence about the redrive loop of a DLQ; None if there is no redrive loop."""
    if newest.different < DIFFERENT or newest.again < SHARE * newest.seen:
        return None
    return (
        f"The DLQ refills with redriven messages: the bodies of {newest.again} of its newest {newest.seen} messages "
        f"were delivered {ROUNDS} times or more within the last hour, and came back as new messages."
    )
