"""Five minutes in which a FIFO queue knows what it was sent before."""

from collections import deque
from typing import Final

WINDOW: Final = 300.0

Key = str | tuple[str, str]


class Deduplication:
    """Deduplication ids of the last five minutes, with the ids that the first send was answered.

    It knows nothing of receives and deletes: an id is remembered for the whole window whatever became of its message.
    """

    __slots__ = ("_entries", "_order")

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, str, str]] = {}
        self._order: deque[tuple[float, Key]] = deque()

    def find(self, key: Key, now: float) -> tuple[str, str] | None:
        """Message id and sequence number of the send that `key` was first seen with, or None."""
        order = self._order
        while order and order[0][0] <= now:
            del self._entries[order.popleft()[1]]
        found = self._entries.get(key)
        return None if found is None else found[1:]

    def remember(self, key: Key, message_id: str, sequence_number: str, now: float) -> None:
        """Keep an unknown `key` for the next five minutes; later duplicates do not prolong them."""
        self._entries[key] = (now + WINDOW, message_id, sequence_number)
        self._order.append((now + WINDOW, key))
