"""A standard queue. Messages are received roughly in the order in which they became visible."""

from collections import deque

from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.message import READY, Message
from redrive_service.sandbox.sqs.queues.queue import Identity, Queue
from redrive_service.sandbox.sqs.queues.timers import Timers


class StandardQueue(Queue):
    """A standard queue. Its list has the visible messages. Deleted messages stay in it until a receive skips them."""

    fifo = False

    def __init__(self, identity: Identity, settings: Settings, timers: Timers, woken: set[str]) -> None:
        super().__init__(identity, settings, timers, woken)
        self._line: deque[Message] = deque()

    def take(self, most: int, receives: float) -> tuple[list[Message], list[Message]]:  # noqa: D102 - see Queue
        taken: list[Message] = []
        spent: list[Message] = []
        line = self._line
        while line and len(taken) < most:
            message = line.popleft()
            if message.state != READY:
                continue
            if message.receive_count >= receives:
                spent.append(message)
            else:
                taken.append(message)
        return taken, spent

    def movable(self) -> Message | None:  # noqa: D102 - see Queue
        while self._line and self._line[0].state != READY:
            self._line.popleft()
        return self._line[0] if self._line else None

    def has_something(self) -> bool:  # noqa: D102 - see Queue
        return self.counts[READY] > 0

    def _line_up(self, message: Message) -> None:
        self._line.append(message)
        self.woken.add(self.name)

    def _forget(self) -> None:
        self._line.clear()
