"""Receives that a client may repeat if the answer was lost (ReceiveRequestAttemptId, FIFO queues only)."""

from collections import deque
from typing import Final

from redrive_service.sandbox.sqs.queues.message import Message

WINDOW: Final = 300.0  # seconds


class ReceiveAttempts:
    """The messages of recent receives with an attempt id, kept for five minutes.

    A repeated receive returns the same messages with the same handles. But if one of the messages was deleted, received
    again or made visible, or its visibility timeout was changed, the repeated receive is a new receive.
    """

    __slots__ = ("_entries", "_order")

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, list[tuple[Message, str, int]]]] = {}
        self._order: deque[tuple[float, str]] = deque()

    def repeat(self, attempt_id: str, now: float) -> list[Message]:
        """Return the messages of the earlier receive, or an empty list if it is unknown or cannot be repeated."""
        order = self._order
        while order and order[0][0] <= now:
            expires, old = order.popleft()
            entry = self._entries.get(old)
            if entry and entry[0] == expires:
                del self._entries[old]
        _, handed_out = self._entries.get(attempt_id, (now, []))
        for message, handle, timer in handed_out:
            if message.handle != handle or message.timer != timer:  # each time in flight has another timer
                return []
        return [message for message, _, _ in handed_out]

    def remember(self, attempt_id: str, messages: list[Message], now: float) -> None:
        """Store the messages of a receive by its attempt id, for five minutes after the first receive with this id."""
        expires, known = self._entries.get(attempt_id, (now + WINDOW, []))
        if [message.handle for message in messages] != [handle for _, handle, _ in known]:
            expires = now + WINDOW
            self._order.append((expires, attempt_id))
        self._entries[attempt_id] = (expires, [(message, message.handle, message.timer) for message in messages])
