"""Make queues what they are wanted to be, step by step, each after another look: SQS has no transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.aws.queue_diff import differences
from reprocessing.domain.aws.queue_spec import ALLOW, Contradicts, Difference, Differs, Found, Missing, Wanted, fitted
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.sqs.provisioning import Place, change, create, find

_LOOKS: Final = 8  #: four steps, and some for what SQS does not show yet
_REST: Final = 1.0  #: seconds: AWS, CreateQueue: "you must wait at least one second" before a queue is used


@dataclass(frozen=True, slots=True)
class Look:
    """A queue, as it is wanted and as it is."""

    place: Place
    wanted: Wanted
    address: QueueAddress | None
    found: Found | None
    differences: tuple[Difference, ...]

    @property
    def is_to_be_changed(self) -> bool:
        """Whether it is to be made, or to be changed."""
        return any(isinstance(one, Missing | Differs) for one in self.differences)

    @property
    def is_contradicted(self) -> bool:
        """Whether a person has to decide first."""
        return any(isinstance(one, Contradicts) for one in self.differences)


@dataclass(frozen=True, slots=True)
class Step:
    """What was done to a queue."""

    name: str
    done: tuple[Missing | Differs, ...]


def look(wanted: Iterable[tuple[Place, Wanted]]) -> list[Look]:
    """Ask SQS for each queue.

    Raises:
        QueueIsOutOfReach: SQS refused or did not answer.
    """
    asked = [(place, one, find(place, one.name)) for place, one in wanted]
    found = {one.name: seen[1] if seen else None for _, one, seen in asked}
    looks = []
    for (place, _, seen), one in zip(asked, fitted([one for _, one, _ in asked], found), strict=True):
        there = seen[1] if seen else None
        looks.append(Look(place, one, seen[0] if seen else None, there, differences(one, there)))
    return looks


def queues(looks: Sequence[Look], *, pause: Callable[[float], None]) -> Iterable[Step]:
    """Do what the looks ask for: each step as soon as it is done, then what the next look shows.

    Queues are made first, so that policies name only what is there. A dlq into which some queues may die, by name,
    takes the new one before that is told to die there; one into which all may is narrowed down last, to all who then
    do. Two who do this at once do the same, or see what the other one did.

    Args:
        looks: none of them contradicted.
        pause: waits for so many seconds.

    Raises:
        QueueIsOutOfReach: SQS refused or did not answer; what was yielded is done.
    """
    before: list[Step] = []
    for _ in range(_LOOKS):
        steps = _next(looks)
        if not steps or any(one.is_contradicted for one in looks):
            return
        if [step for step, _ in steps] == before:
            pause(_REST)  # SQS does not show it yet
        for step, one in steps:
            _do(step, one)
            if step not in before:
                yield step
        before = [step for step, _ in steps]
        looks = look([(one.place, one.wanted) for one in looks])


def _next(looks: Sequence[Look]) -> list[tuple[Step, Look]]:
    """The first of four kinds of steps that something is left of."""
    for is_due in (_makes, _widens, _sets, _narrows):
        steps = [
            (Step(one.wanted.name, tuple(due)), one)
            for one in looks
            if (due := [each for each in one.differences if isinstance(each, Missing | Differs) and is_due(each)])
        ]
        if steps:
            return steps
    return []


def _makes(one: Missing | Differs) -> bool:
    return isinstance(one, Missing)


def _widens(one: Missing | Differs) -> bool:
    return isinstance(one, Differs) and one.attribute == ALLOW and one.found != "allowAll"


def _sets(one: Missing | Differs) -> bool:
    return isinstance(one, Differs) and one.attribute != ALLOW


def _narrows(one: Missing | Differs) -> bool:
    return isinstance(one, Differs)


def _do(step: Step, one: Look) -> None:
    for each in step.done:
        if isinstance(each, Missing):
            create(one.place, one.wanted.name, each.attributes)
    changes = {each.attribute: each.wanted for each in step.done if isinstance(each, Differs)}
    if changes and one.address is not None:
        change(one.address, changes)
