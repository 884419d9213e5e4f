"""What is due when: one heap for everything that happens by itself.

All timers share one heap and fire strictly in the order of their due times, so the state at an instant depends on the
calls made and on nothing else - not on who happened to look in between.
"""

from heapq import heapify, heappop, heappush
from typing import Final, Protocol

# A heap that holds this many dead entries more than live ones is rebuilt. Few, for they keep dead messages in memory.
_SLACK: Final = 64


class Timed(Protocol):
    """Something with at most one pending timer; `timer` is its number, 0 when there is none."""

    timer: int

    def fire(self, due: float) -> None:
        """The time has come; `due` is the time that was set, not the time somebody noticed."""


class Timers:
    """A heap of due times with lazy deletion, O(log n) for every call."""

    __slots__ = ("_heap", "_live", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._live = 0
        self._number = 0

    def set(self, timed: Timed, due: float) -> None:
        """`timed` fires at `due` and no longer at any earlier set time."""
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
        """`timed` does not fire."""
        if timed.timer:
            timed.timer = 0
            self._live -= 1

    def fire_next(self) -> None:
        """Fire the timer that `due_by` has just told of."""
        due, _, timed = heappop(self._heap)
        timed.timer = 0
        self._live -= 1
        timed.fire(due)

    def due_by(self, now: float) -> float | None:
        """When the next timer fires, or None if none fires by `now`; dead entries that are not due are left alone."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, number, timed = heap[0]
            if timed.timer == number:
                return due
            heappop(heap)
        return None

    def next_due(self) -> float | None:
        """When the next timer fires, or None."""
        heap = self._heap
        while heap:
            due, number, timed = heap[0]
            if timed.timer == number:
                return due
            heappop(heap)
        return None
