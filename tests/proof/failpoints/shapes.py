"""The worlds a cell can play in: which queue, when its copies are deleted, what its target is judged by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of world.

    Attributes:
        fifo: its queues.
        captured: copies are deleted as soon as their letters are committed; else they are held in the dlq.
        absence: a letter is delivered when it does not come back; else as soon as its target took it.
        trouble: `poison`: the first message fails for ever, while others go well; `outage`: the first messages of all
            keys fail, which opens the breaker, and the automatic run soon gives up, for a person to resume it.
    """

    fifo: bool
    captured: bool
    absence: bool
    trouble: Literal["", "poison", "outage"] = ""

    @property
    def policy(self) -> dict[str, Any]:
        if self.fifo:
            return {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}
        when = "captured" if self.captured else "terminal"
        return {"ordering_key": "attribute:key", "sequence": "attribute:n", "delete_when": when}

    def __str__(self) -> str:
        words = ("FIFO" if self.fifo else "standard", "captured" if self.captured else "held")
        return ", ".join((*words, "absence" if self.absence else "accepted", *filter(None, [self.trouble])))


ALL: Final = (
    Shape(fifo=False, captured=False, absence=False),
    Shape(fifo=False, captured=False, absence=True),
    Shape(fifo=True, captured=True, absence=False),
    Shape(fifo=False, captured=True, absence=False),
    Shape(fifo=True, captured=True, absence=True),
    Shape(fifo=False, captured=True, absence=True),
)
CAPTURED: Final = tuple(one for one in ALL if one.captured)
HELD: Final = tuple(one for one in ALL if not one.captured)
HELD_ACCEPTED: Final = tuple(one for one in HELD if not one.absence)
HELD_ABSENCE: Final = tuple(one for one in HELD if one.absence)
ABSENCE: Final = tuple(one for one in ALL if one.absence)
POISON: Final = tuple(replace(one, trouble="poison") for one in ABSENCE)
OUTAGE: Final = tuple(replace(one, trouble="outage") for one in ABSENCE)
