"""The fault plan: a list with which a test says which calls of the local SQS fail, and how (docs/local_sqs.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from redrive_service.sandbox.sqs.actions.registry import ACTIONS

ANY: Final = "*"
RECEIVE: Final = "ReceiveMessage"
BATCHES: Final = frozenset({"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"})
# Kinds of faults that affect a call when it arrives.
ON_ARRIVAL: Final = frozenset({"error", "drop", "hang", "accept_then_timeout", "partial", "delay"})
# Kinds of faults that affect only a receive that has messages to return. An empty receive does not use them up.
ON_HAND_OUT: Final = frozenset({"duplicate", "early_expiry", "false_empty"})

_OWN_FIELDS: Final[Mapping[str, Mapping[str, object]]] = {
    "error": {"status": 500, "code": "InternalError", "message": "The local SQS was told to fail."},
    "early_expiry": {"seconds": 0},
    "delay": {"milliseconds": 10, "jitter": 0},
    "partial": {"code": "InternalError", "positions": (0,), "message": "The local SQS was told to fail this entry."},
}
_LOWEST_STATUS: Final = 400
_HIGHEST_STATUS: Final = 599
_LONGEST_VISIBILITY: Final = 43_200  # seconds
_LONGEST_DELAY: Final = 60_000  # milliseconds


class FaultIsUnusable(Exception):
    """A fault plan is invalid. The error says which fault, and why."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault of the plan. The first `after` matching calls succeed, and the next `times` calls are affected.

    If `times` is None, all later calls are affected. A delay lasts `milliseconds`, plus or minus up to `jitter`
    milliseconds. `matched` and `fired` count the calls that have matched, and that were affected. `given` is the fault
    as the test sent it.
    """

    kind: str
    action: str = ANY
    queue: str | None = None
    times: int | None = None
    after: int = 0
    status: int = 500
    code: str = "InternalError"
    message: str = ""
    seconds: int = 0
    milliseconds: int = 0
    jitter: int = 0
    positions: tuple[int, ...] = ()
    matched: int = 0
    fired: int = 0
    given: Mapping[str, object] = field(default_factory=dict)

    def matches(self, action: str, queue: str | None) -> bool:
        """Return whether this fault applies to a call of this action on this queue."""
        if self.action not in (ANY, action) or self.queue not in (None, queue):
            return False
        if self.kind == "partial":
            return action in BATCHES
        return self.kind in ON_ARRIVAL or action == RECEIVE

    def strikes(self) -> bool:
        """Count a matching call, and return whether the fault affects it (see `after` and `times`)."""
        if self.times is not None and self.fired >= self.times:
            return False
        self.matched += 1
        if self.matched <= self.after:
            return False
        self.fired += 1
        return True


class FaultPlan:
    """The faults of a plan. Only the first fault that applies affects a call. Later faults do not count the call."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __bool__(self) -> bool:
        return bool(self._faults)

    def replace(self, plan: object) -> None:
        """Replace the plan. All counts begin at 0.

        Raises:
            FaultIsUnusable: the new plan is invalid. The old plan stays.
        """
        if not isinstance(plan, list):
            raise FaultIsUnusable("A fault plan is a list of faults.")
        self._faults = [read_fault(position, fault) for position, fault in enumerate(plan)]

    def clear(self) -> None:
        """Remove all faults."""
        self._faults = []

    def shown(self) -> list[dict[str, object]]:
        """Return the faults as the test sent them, each with `fired`, the number of calls that it has affected."""
        return [{**fault.given, "fired": fault.fired} for fault in self._faults]

    def on_arrival(self, action: str, queue: str | None) -> Fault | None:
        """Return the fault that affects a call that has just arrived, or None."""
        return self._decide(ON_ARRIVAL, action, queue)

    def on_hand_out(self, queue: str | None) -> Fault | None:
        """Return the fault that affects a receive that has messages to return, or None."""
        return self._decide(ON_HAND_OUT, RECEIVE, queue)

    def _decide(self, kinds: frozenset[str], action: str, queue: str | None) -> Fault | None:
        for fault in self._faults:
            if fault.kind in kinds and fault.matches(action, queue) and fault.strikes():
                return fault
        return None


def read_fault(position: int, given: object) -> Fault:
    """Return the fault at `position` of a plan, from its JSON value. Raises FaultIsUnusable if it is invalid."""
    where = f"Fault {position}"
    if not isinstance(given, dict):
        raise FaultIsUnusable(f"{where} must be an object with a kind.")
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in ON_ARRIVAL | ON_HAND_OUT:
        raise FaultIsUnusable(f"{where}: kind must be one of {', '.join(sorted(ON_ARRIVAL | ON_HAND_OUT))}.")
    own = _OWN_FIELDS.get(kind, {})
    known = {"kind", "action", "queue", "times", "after", *own}
    unknown = sorted(set(given) - known)
    if unknown:
        raise FaultIsUnusable(f"{where}: {kind} has no field {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    values = {name: value for name, value in {**own, **given}.items() if value is not None}
    _check_numbers(where, values)
    _check_texts(where, values)
    values["positions"] = _read_positions(where, values.get("positions", ()))
    return Fault(**values, given=given)


def _check_numbers(where: str, values: Mapping[str, object]) -> None:
    ranges = {
        "times": (0, None),
        "after": (0, None),
        "seconds": (0, _LONGEST_VISIBILITY),
        "milliseconds": (0, _LONGEST_DELAY),
        "jitter": (0, _LONGEST_DELAY),
        "status": (_LOWEST_STATUS, _HIGHEST_STATUS),
    }
    for name, (low, high) in ranges.items():
        value = values.get(name, low)
        if not isinstance(value, int) or isinstance(value, bool) or value < low or (high and value > high):
            raise FaultIsUnusable(f"{where}: {name} must be a whole number from {low}{f' to {high}' if high else ''}.")


def _check_texts(where: str, values: Mapping[str, object]) -> None:
    for name in ("action", "queue", "code", "message"):
        if not isinstance(values.get(name, ""), str):
            raise FaultIsUnusable(f"{where}: {name} must be text.")
    action = values.get("action", ANY)
    if action != ANY and action not in ACTIONS:
        raise FaultIsUnusable(f"{where}: SQS has no action {action!r}; {ANY} means any.")


def _read_positions(where: str, positions: object) -> tuple[int, ...]:
    if not isinstance(positions, list | tuple) or not all(isinstance(item, int) and item >= 0 for item in positions):
        raise FaultIsUnusable(f"{where}: positions must be a list of whole numbers, 0 for the first entry.")
    return tuple(positions)
