"""Create and change queues in SQS, step by step, until they have the wanted attributes. SQS has no transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.aws.queue_diff import differences
from reprocessing.domain.aws.queue_spec import (
    ALLOW,
    AttributeContradicts,
    AttributeDiffers,
    Difference,
    ExistingQueue,
    QueueMissing,
    WantedQueue,
    with_source_deduplication,
)
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.sqs.provisioning import QueueLocation, change_attributes, find_queue, make_queue

_LOOKS: Final = 8  #: most rounds of comparing and changing: four for the steps, four because SQS may show changes late
_REST: Final = 1.0  #: seconds between rounds. AWS: "you must wait at least one second" after CreateQueue


@dataclass(frozen=True, slots=True)
class QueueComparison:
    """The comparison of a wanted queue with the queue of this name in SQS.

    Attributes:
        place: the region, role and account of the queue.
        wanted: the wanted queue.
        address: the existing queue's address; None: there is no such queue.
        found: the existing queue; None: there is no such queue.
        differences: how the existing queue differs from the wanted queue.
    """

    place: QueueLocation
    wanted: WantedQueue
    address: QueueAddress | None
    found: ExistingQueue | None
    differences: tuple[Difference, ...]

    @property
    def is_to_be_changed(self) -> bool:
        """Return whether the queue must be created or changed."""
        return any(isinstance(difference, QueueMissing | AttributeDiffers) for difference in self.differences)

    @property
    def is_contradicted(self) -> bool:
        """Return whether a person must decide about a difference. Until then, nothing is changed."""
        return any(isinstance(difference, AttributeContradicts) for difference in self.differences)


@dataclass(frozen=True, slots=True)
class Step:
    """One creation or change of a queue. `name`: the queue's name. `differences`: what it corrects."""

    name: str
    differences: tuple[QueueMissing | AttributeDiffers, ...]


def compare_queues(wanted: Iterable[tuple[QueueLocation, WantedQueue]]) -> list[QueueComparison]:
    """Compare each wanted queue with the queue of the same name in SQS.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    asked = [(place, queue, find_queue(place, queue.name)) for place, queue in wanted]
    found = {queue.name: seen[1] if seen else None for _, queue, seen in asked}
    looks = []
    for (place, _, seen), queue in zip(
        asked, with_source_deduplication([queue for _, queue, _ in asked], found), strict=True
    ):
        address, there = seen or (None, None)
        looks.append(QueueComparison(place, queue, address, there, differences(queue, there)))
    return looks


def apply_steps(looks: Sequence[QueueComparison], *, pause: Callable[[float], None]) -> Iterable[Step]:
    """Create and change the queues; yield each step when it is done.

    If a person must decide about a difference of any queue (`is_contradicted`), do nothing.

    First, queues are created, so that policies name existing queues. A source queue is added to a DLQ's
    RedriveAllowPolicy before that source queue names the DLQ. A RedriveAllowPolicy `allowAll` is narrowed last, to the
    queues that then name the DLQ. If two processes do this at the same time, they make the same changes. `pause`: a
    function that waits for the given number of seconds.

    Raises:
        QueueUnreachable: SQS refused or did not answer; the steps that were yielded are done.
    """
    before: list[Step] = []
    for _ in range(_LOOKS):
        steps = _next(looks)
        if not steps or any(seen.is_contradicted for seen in looks):
            return
        if [step for step, _ in steps] == before:
            pause(_REST)  # SQS does not show the change yet
        for step, seen in steps:
            _do(step, seen)
            if step not in before:
                yield step
        before = [step for step, _ in steps]
        looks = compare_queues([(seen.place, seen.wanted) for seen in looks])


def _next(looks: Sequence[QueueComparison]) -> list[tuple[Step, QueueComparison]]:
    """Return the steps that can be done next, each with the comparison of its queue.

    These are the steps with the lowest rank (see `_order`).
    """
    left = [
        (difference, seen)
        for seen in looks
        for difference in seen.differences
        if isinstance(difference, QueueMissing | AttributeDiffers)
    ]
    first = min((_order(difference) for difference, _ in left), default=0)
    due: dict[str, tuple[list[QueueMissing | AttributeDiffers], QueueComparison]] = {}
    for difference, seen in left:
        if _order(difference) == first:
            due.setdefault(seen.wanted.name, ([], seen))[0].append(difference)
    return [(Step(name, tuple(some)), seen) for name, (some, seen) in due.items()]


def _order(difference: QueueMissing | AttributeDiffers) -> int:
    """Return the rank of a correction; corrections with a lower rank are done first.

    0: create a queue. 1: add queues to a RedriveAllowPolicy. 2: set attributes. 3: narrow a RedriveAllowPolicy
    `allowAll`.
    """
    if isinstance(difference, QueueMissing):
        return 0
    if difference.attribute != ALLOW:
        return 2
    return 3 if difference.found == "allowAll" else 1


def _do(step: Step, seen: QueueComparison) -> None:
    for difference in step.differences:
        if isinstance(difference, QueueMissing):
            make_queue(seen.place, seen.wanted.name, difference.attributes)
    changes = {
        difference.attribute: difference.wanted
        for difference in step.differences
        if isinstance(difference, AttributeDiffers)
    }
    if changes and seen.address is not None:
        change_attributes(seen.address, changes)
