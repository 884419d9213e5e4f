"""The receives that wait for a message (long polling), by queue and by deadline."""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

from redrive_service.sandbox.sqs.server.exchange import Exchange


@dataclass(slots=True, eq=False)
class WaitingReceive:
    """A waiting receive. `done` is true when it was answered, reached its deadline, or its client disconnected."""

    exchange: Exchange
    queue: str
    deadline: float
    done: bool = False


class WaitingReceives:
    """The waiting receives of each queue, in order of arrival."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[WaitingReceive]] = {}
        self._deadlines: list[tuple[float, int, WaitingReceive]] = []
        self._entered = 0
        self._present = 0

    def __bool__(self) -> bool:
        return self._present > 0

    def enter(self, exchange: Exchange, queue: str, deadline: float) -> None:
        """Add a receive that waits until `deadline`, in seconds of the server's clock."""
        waiter = WaitingReceive(exchange, queue, deadline)
        self._entered += 1
        self._present += 1
        heappush(self._deadlines, (deadline, self._entered, waiter))
        self._queues.setdefault(queue, deque()).append(waiter)

    def leave(self, waiter: WaitingReceive) -> None:
        """Remove a receive that was answered, reached its deadline, or lost its client."""
        if not waiter.done:
            waiter.done = True
            self._present -= 1

    def first(self, queue: str) -> WaitingReceive | None:
        """Return the receive that has waited longest for a message of this queue, or None if no receive waits."""
        line = self._queues.get(queue)
        while line:
            if not line[0].done:
                return line[0]
            line.popleft()
        self._queues.pop(queue, None)
        return None

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all waiting receives, or None if no receive waits."""
        while self._deadlines and self._deadlines[0][2].done:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def overdue(self, now: float) -> list[WaitingReceive]:
        """Remove and return the receives whose deadline has passed."""
        leaving = []
        deadline = self.next_deadline()
        while deadline is not None and deadline <= now:
            waiter = heappop(self._deadlines)[2]
            self.leave(waiter)
            leaving.append(waiter)
            deadline = self.next_deadline()
        return leaving

    def everybody(self) -> list[WaitingReceive]:
        """Return all waiting receives, in order of arrival."""
        return [waiter for _, _, waiter in sorted(self._deadlines, key=lambda entry: entry[1]) if not waiter.done]
