"""What rules decide for a letter from its content."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What a rule decides."""

    REPLAY = "replay"  #: it goes, perhaps with another backoff, rate or target
    DELAY = "delay"  #: it goes later, and its lane waits
    DIVERT = "divert"  #: it goes to a queue of its own
    QUARANTINE = "quarantine"  #: a person decides
    DISCARD = "discard"  #: it is given up
    HOLD = "hold"  #: its lane waits until the rule is gone
