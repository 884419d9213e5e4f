"""The deduplication of a FIFO queue, which SQS limits to five minutes."""

from collections import deque
from typing import Final

WINDOW: Final = 300.0  # seconds

Key = str | tuple[str, str]


class Deduplication:
    """The deduplication ids of the last five minutes, each with message id and sequence number of its first message.

    A deduplication id is kept for five minutes even if its message is received or deleted.
    """

    __slots__ = ("_entries", "_order")

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, str, str]] = {}
        self._order: deque[tuple[float, Key]] = deque()

    def find(self, key: Key, now: float) -> tuple[str, str] | None:
        """Return message id and sequence number of the first message with `key` in the last five minutes, or None."""
        order = self._order
        while order and order[0][0] <= now:
            del self._entries[order.popleft()[1]]
        found = self._entries.get(key)
        return None if found is None else found[1:]

    def remember(self, key: Key, message_id: str, sequence_number: str, now: float) -> None:
        """Store a new `key` for five minutes. Later duplicates do not extend this time."""
        self._entries[key] = (now + WINDOW, message_id, sequence_number)
        self._order.append((now + WINDOW, key))
