"""The deduplication of a FIFO queue, which SQS limits to five minutes."""

from collections import deque
from typing import Final

WINDOW: Final = 300.0  # seconds

Key = str | tuple[str, str]


class Deduplication:
    """Deduplication ids of the last five minutes, with message id and sequence number of the first send.

    An id is kept for the five minutes even if its message is received or deleted.
    """

    __slots__ = ("_entries", "_order")

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, str, str]] = {}
        self._order: deque[tuple[float, Key]] = deque()

    def find(self, key: Key, now: float) -> tuple[str, str] | None:
        """Return message id and sequence number of the first send with `key`; None: no such send in five minutes."""
        order = self._order
        while order and order[0][0] <= now:
            del self._entries[order.popleft()[1]]
        found = self._entries.get(key)
        return None if found is None else found[1:]

    def remember(self, key: Key, message_id: str, sequence_number: str, now: float) -> None:
        """Store a new `key` for five minutes; later duplicates do not extend this time."""
        self._entries[key] = (now + WINDOW, message_id, sequence_number)
        self._order.append((now + WINDOW, key))
