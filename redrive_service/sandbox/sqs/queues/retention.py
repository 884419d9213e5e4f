"""Delete messages that are older than the retention period of their queue."""

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.message import Message
from redrive_service.sandbox.sqs.queues.timers import Timers

_SLACK: Final = 1024


class RetainingQueue(Protocol):
    """The part of a queue that `Retention` uses."""

    messages: dict[str, Message]
    settings: Settings
    timers: Timers

    def remove(self, message: Message) -> None:
        """Delete the message."""


class Retention:
    """Deletes messages of one queue when they were sent longer ago than its retention period.

    Only the oldest message has a timer, so a change of the retention period changes one timer.
    """

    __slots__ = ("_ages", "_due", "_queue", "timer")

    def __init__(self, queue: RetainingQueue) -> None:
        self._queue = queue
        self._ages: list[tuple[float, str]] = []
        self._due = 0.0
        self.timer = 0

    def watch(self, message: Message) -> None:
        """Add a message. It is deleted when it is older than the retention period."""
        ages = self._ages
        heappush(ages, (message.sent_at, message.key))
        messages = self._queue.messages
        if len(ages) > 2 * len(messages) + _SLACK:
            ages[:] = [age for age in ages if age[1] in messages]
            heapify(ages)
        due = message.sent_at + self._queue.settings.retention
        if not self.timer or due < self._due:
            self._set(due)

    def rearm(self) -> None:
        """Set the timer again, after a change of the retention period."""
        self._queue.timers.cancel(self)
        if self._ages:
            self._set(self._ages[0][0] + self._queue.settings.retention)

    def fire(self, due: float) -> None:
        """Delete the messages that are too old at the time `due`, and set the timer for the next message."""
        ages, messages, period = self._ages, self._queue.messages, self._queue.settings.retention
        while ages and (ages[0][0] + period <= due or ages[0][1] not in messages):
            message = messages.get(heappop(ages)[1])
            if message is not None:
                self._queue.remove(message)
        if ages:
            self._set(ages[0][0] + period)

    def _set(self, due: float) -> None:
        self._due = due
        self._queue.timers.set(self, due)
