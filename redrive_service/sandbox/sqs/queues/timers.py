"""The timers of all timed events, such as the end of a visibility timeout.

All timers are in one heap, and are executed strictly in the order of their times. So the state at a given time depends
only on calls that changed something, not on calls that only read.
"""

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

# The heap is rebuilt when it has this many more cancelled timers than others. Few, because each keeps its message.
_SLACK: Final = 64


class Timed(Protocol):
    """An object that has at most one timer. `timer` is the number of the timer, or 0 if no timer is set."""

    timer: int

    def fire(self, due: float) -> None:
        """Do what the timer was set for. `due` is the time for which it was set, not the current time."""


class Timers:
    """All timers, in a heap. A cancelled timer stays in the heap for a while. Every call takes O(log n) time."""

    __slots__ = ("_heap", "_live", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._live = 0
        self._number = 0

    def set(self, timed: Timed, due: float) -> None:
        """Call `timed.fire` at the time `due`. This replaces an earlier timer of `timed`."""
        if not timed.timer:
            self._live += 1
        self._number = number = self._number + 1
        timed.timer = number
        heap = self._heap
        heappush(heap, (due, number, timed))
        if len(heap) > 2 * self._live + _SLACK:
            heap[:] = [entry for entry in heap if entry[2].timer == entry[1]]
            heapify(heap)

    def cancel(self, timed: Timed) -> None:
        """Cancel the timer of `timed`."""
        if timed.timer:
            timed.timer = 0
            self._live -= 1

    def fire_next(self) -> None:
        """Execute the timer whose time `due_by` has just returned."""
        due, _, timed = heappop(self._heap)
        timed.timer = 0
        self._live -= 1
        timed.fire(due)

    def due_by(self, now: float) -> float | None:
        """Return the time of the next timer, or None if this time is after `now`."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, number, timed = heap[0]
            if timed.timer == number:
                return due
            heappop(heap)
        return None

    def next_due(self) -> float | None:
        """Return the time of the next timer, or None if no timer is set."""
        heap = self._heap
        while heap:
            due, number, timed = heap[0]
            if timed.timer == number:
                return due
            heappop(heap)
        return None
