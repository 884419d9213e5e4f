"""Identify the messages that a dry run showed, so that its confirmation acts on exactly these messages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


class Selected(Protocol):
    """A message that a dry run showed: its id, and since when it has its present state."""

    @property
    def id(self) -> int:
        """Return the letter's id."""

    @property
    def since(self) -> datetime:
        """Return since when the message has its present state."""


def selection_mark(chosen: Sequence[Selected]) -> str:
    """Return a short text that identifies these messages, and changes if a message changes its state.

    The text has the newest `since` in microseconds, and a digest of all ids and times.
    """
    newest = max((message.since for message in chosen), default=EPOCH)
    each = sorted(f"{message.id}@{(message.since - EPOCH) // MICROSECOND}" for message in chosen)
    return f"{(newest - EPOCH) // MICROSECOND}-{hashlib.sha256(' '.join(each).encode()).hexdigest()[:16]}"
