"""What can be found of a letter that a restored backup knows as unfinished, and what that says."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Finding(StrEnum):
    """What is found of it."""

    SEEN = "seen"  #: its copy was in the dlq after the hold
    ARRIVED = "arrived"  #: the backup does not know it; its message was there before
    CAME_BACK = "came_back"  #: an attempt came back that the backup does not know
    GONE = "gone"  #: its copy is in the dlq no more
    DROPPED = "dropped"  #: likewise, and it had expired, or was about to
    HIDDEN = "hidden"  #: its copy has not come to sight, and may yet
    NO_COPY = "no_copy"  #: no copy was held of it
    SENT = "sent"  #: it was out when the backup was made

    @property
    def kind(self) -> str:
        """Which of the three words of a person is meant for it: finished, unfinished, unknown."""
        return _KINDS[self]

    @property
    def sentence(self) -> str:
        """What it says, for whoever decides."""
        return _SENTENCES[self]


_KINDS: Final = {
    Finding.SEEN: "unfinished",
    Finding.ARRIVED: "unfinished",
    Finding.CAME_BACK: "unfinished",
    Finding.GONE: "finished",
    Finding.DROPPED: "unknown",
    Finding.HIDDEN: "unknown",
    Finding.NO_COPY: "unknown",
    Finding.SENT: "unknown",
}
_SENTENCES: Final = {
    Finding.SEEN: "its copy is in the dlq: it was not finished; never sent, or sent and not settled",
    Finding.ARRIVED: "captured anew: its copy is in the dlq, so it was not finished; it may have been sent",
    Finding.CAME_BACK: "it was sent after the backup, failed, and came back",
    Finding.GONE: "its copy is gone: it was delivered, parked or discarded since, and nobody knows which",
    Finding.DROPPED: "its copy is gone, and had expired or was about to: whether it was finished is not known",
    Finding.HIDDEN: "its copy has not come to sight, and may yet",
    Finding.NO_COPY: "no copy of it was held in the dlq: nothing is known",
    Finding.SENT: "it was with its target when the backup was made: what became of it is not known",
}
