"""Describe what is known about unfinished letters after PostgreSQL was restored from a backup."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Finding(StrEnum):
    """What was found about one unfinished letter after a restore. Its copy is the letter's message in the DLQ."""

    SEEN = "seen"  #: the letter's copy was in the DLQ after the restore
    ARRIVED = "arrived"  #: the letter is not in the backup, and its message is older than the restore
    CAME_BACK = "came_back"  #: the letter came back from an attempt that is not in the backup
    GONE = "gone"  #: the letter's copy is no longer in the DLQ
    DROPPED = "dropped"  #: the letter's copy is no longer in the DLQ, and had expired or was about to expire
    HIDDEN = "hidden"  #: no capture has received the letter's copy since the restore
    NO_COPY = "no_copy"  #: when the backup was made, the service kept no copy of the letter in the DLQ
    SENT = "sent"  #: the letter had been sent when the backup was made

    @property
    def kind(self) -> str:
        """Return whether the letter was already finished at the restore: "finished", "unfinished" or "unknown"."""
        if self is Finding.GONE:
            return "finished"
        return "unfinished" if self in _UNFINISHED else "unknown"

    @property
    def sentence(self) -> str:
        """Return in words what was found about the letter, and what follows from it."""
        return _SENTENCES[self]


_UNFINISHED: Final = frozenset({Finding.SEEN, Finding.ARRIVED, Finding.CAME_BACK})
_SENTENCES: Final = {
    Finding.SEEN: "it was still in the DLQ after the restore, so it was not finished; it may have been sent",
    Finding.ARRIVED: "it was captured again from the DLQ, so it was not finished; it may have been sent",
    Finding.CAME_BACK: "it was sent after the backup, failed, and came back",
    Finding.GONE: "it is no longer in the DLQ: it was delivered, parked or discarded after the backup",
    Finding.DROPPED: "it is no longer in the DLQ, maybe because it expired: whether it was finished is not known",
    Finding.HIDDEN: "no capture has received it since the restore: it may be invisible, or no longer in the DLQ",
    Finding.NO_COPY: "when the backup was made, the service did not keep it in the DLQ: nothing is known",
    Finding.SENT: "it had been sent when the backup was made: its outcome is not known",
}
