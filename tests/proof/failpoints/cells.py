"""The cells: every point with every fault that can be seen there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.proof.failpoints.faults import Fault
from tests.proof.failpoints.points import NAMED, POINTS, Point


@dataclass(frozen=True, slots=True)
class Cell:
    point: Point
    fault: Fault

    @property
    def name(self) -> str:
        return f"{self.point.name}: {self.fault}"

    @property
    def is_late(self) -> bool:
        """The one case that PROTOCOL does not claim: frozen between the deadline's question and the socket."""
        return self.fault is Fault.STOP and self.point.name == "deadline asked, nothing written"

    @property
    def may_repeat(self) -> bool:
        """Whether the fault leaves letters with SQS of which nobody has recorded that: one intent group."""
        if not self.point.sends or self.fault is Fault.REDIS:
            return False
        match self.point.name:
            case "intent committed, nothing sent":
                return self.fault is Fault.TERMINATE  # it sends, and cannot settle
            case "deadline asked, nothing written":
                return self.fault in {Fault.TERMINATE, Fault.STOP}
            case _:
                return True


def is_seen(point: Point, fault: Fault) -> bool:
    """Whether a fault can be seen at a point, or after it.

    Redis gone is left out of capture, plan, returns, promotion and recovery: they never ask it.
    """
    return fault is not Fault.REDIS or point.meters


CELLS: Final = tuple(Cell(point, fault) for point in POINTS for fault in Fault if is_seen(point, fault))


def named(name: str) -> Cell:
    point, _, fault = name.rpartition(": ")
    return Cell(NAMED[point], Fault(fault))
