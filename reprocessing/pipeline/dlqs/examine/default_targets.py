"""Find the default target of a source: the queue, function or endpoint that failed to process the messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from reprocessing.domain.message.arn import Arn, ResourceKind, read, resource_name
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.aws_services.sns_subscribers import subscription
from reprocessing.gateways.sqs import QueueAddress, locate
from reprocessing.models import Target
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue, describe_queue
from reprocessing.store.targets import targets

RATE: Final = 10.0  #: messages a second to a new target
_KIB, _MIB = 1024, 1024 * 1024
#: Most bytes of a message that a target accepts, by the target's kind. For queues, SQS returns the limit.
#: Functions: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html (6 MB in synchronous invocations).
#: Topics: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html (256 KB, 262,144 bytes).
#: Buses: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html (less than 256 KB).
#: Endpoints: more than the largest SQS message.
_LARGEST: Final = {
    TargetKind.LAMBDA: 6 * _MIB,
    TargetKind.TOPIC: 256 * _KIB,
    TargetKind.BUS: 256 * _KIB - 1,
    TargetKind.HTTP: 10 * _MIB,
}
_TIMEOUT: Final = {TargetKind.LAMBDA: 60.0}  #: seconds; longer than usual, because functions may run for 15 minutes
_USUAL_TIMEOUT: Final = 30.0  #: seconds
_KINDS: Final = {
    ResourceKind.FUNCTION: TargetKind.LAMBDA,
    ResourceKind.TOPIC: TargetKind.TOPIC,
    ResourceKind.BUS: TargetKind.BUS,
}
_SAY_WHERE: Final = "Set the target of its messages: --to TARGET."


@dataclass(frozen=True, slots=True)
class NoTarget:
    """Returned if messages cannot be redriven to a source. `why`: the reason. `cure`: what a person can do."""

    source: str
    why: str
    cure: str = _SAY_WHERE


def kind_of(named: ResourceKind) -> TargetKind | None:
    """Return the kind of target that a resource of this kind is.

    None: nothing can be sent to such a resource, or only SQS knows the kind, because it may be a standard or FIFO
    queue.
    """
    return _KINDS.get(named)


def default_timeout(kind: TargetKind) -> float:
    """Return for how many seconds a new target of this kind may answer: 60 for functions, 30 for others."""
    return _TIMEOUT.get(kind, _USUAL_TIMEOUT)


def default_fields(kind: TargetKind, arn: str, *, region: str = "", fifo: bool = False) -> dict[str, Any]:
    """Return the default values of a new target that is not a queue, by the names of its row's fields.

    `arn`: the ARN, or the URL of an endpoint. `region`: the target's region; empty: the service's own region.
    """
    return {
        "kind": kind.value,
        "url": arn if kind is TargetKind.HTTP else "",
        "region": region or configured_region() or "",
        "fifo": fifo,
        "proof": Proof.ACCEPTED.value,
        "advance": Advance.ACCEPTED.value,
        "rate": RATE,
        "burst": None,
        "timeout": default_timeout(kind),
        "size_limit": _LARGEST[kind],
    }


def default_target(arn: Arn, *, role: str = "") -> DescribedQueue | Target | NoTarget:
    """Return the target to which the messages of a failed resource go by default; `NoTarget` if there is none.

    The target may not be stored yet.

    Raises:
        QueueUnreachable: AWS did not answer about a queue or a subscription.
    """
    match arn.named:
        case ResourceKind.QUEUE:
            return describe_queue(locate(arn.text, role))
        case ResourceKind.FUNCTION:
            return _target(TargetKind.LAMBDA, arn.text, region=arn.region, role=role)
        case ResourceKind.SUBSCRIPTION:
            return _subscriber(arn, role)
        case ResourceKind.TOPIC | ResourceKind.BUS | ResourceKind.RULE | ResourceKind.ANOTHER:
            return _nowhere(arn)


def _nowhere(arn: Arn) -> NoTarget:
    """Return the reason why messages cannot be redriven to a topic, bus, rule or other resource, and what to do."""
    name = resource_name(arn.text)
    match arn.named:
        case ResourceKind.TOPIC:
            cure = "Name the subscription that failed: --source with its ARN. To publish to all of them: --to TARGET."
            return NoTarget(arn.text, f"{name} is a topic, and messages fail in its subscriptions.", cure)
        case ResourceKind.BUS:
            cure = "To put messages there again: manage.py add_target ARN --refire N --confirm, and --to ARN here."
            return NoTarget(arn.text, f"{name} is a bus: all of its rules receive each event.", cure)
        case ResourceKind.RULE:
            cure = "Name the target that failed: the TARGET_ARN that its messages carry."
            return NoTarget(arn.text, f"{name} is a rule, and messages fail in its targets.", cure)
        case _:
            return NoTarget(arn.text, f"{arn.text} is {arn.named.value}.")


def _subscriber(arn: Arn, role: str) -> DescribedQueue | Target | NoTarget:
    """Return the queue, function or endpoint to which a subscription delivers; or `NoTarget`: it cannot be a target."""
    said = subscription(arn.text, role)
    if said.protocol in {"http", "https"}:
        return _target(TargetKind.HTTP, said.endpoint)
    found = read(said.endpoint)
    if found and (said.protocol, found.named) in {("sqs", ResourceKind.QUEUE), ("lambda", ResourceKind.FUNCTION)}:
        return default_target(found, role=role)
    why = f"{resource_name(arn.text)} delivers by {said.protocol}, which this service cannot send to."
    return NoTarget(arn.text, why)


def _target(kind: TargetKind, arn: str, *, region: str = "", role: str = "") -> Target:
    row = targets.find_targets([arn]).get(arn)
    return row or Target(arn=arn, role_arn=role, **default_fields(kind, arn, region=region))


@dataclass(slots=True)
class SourceTargets:
    """Finds the target of each source of a DLQ.

    Attributes:
        to: the target that a person gave; None: the person gave none.
        takes_back: True: messages go back to their source, even if another target is stored for the source.
        meant: the sources to which `to` and `takes_back` apply; empty: all sources.
        role: the ARN of the role to assume.
        known: the targets of stored sources, by the source's ARN.
        ways: result: the ARN of each source's target, by the source's ARN.
        nowhere: result: the sources to which messages cannot be redriven, with the reasons.
        queues: result: the targets that are queues, by ARN.
        others: result: the targets that are not queues, by ARN.
    """

    to: Target | None
    takes_back: bool
    meant: Sequence[str]
    role: str
    known: Mapping[str, Target]
    ways: dict[str, str] = field(default_factory=dict)
    nowhere: list[NoTarget] = field(default_factory=list)
    queues: dict[str, DescribedQueue] = field(default_factory=dict)
    others: dict[str, Target] = field(default_factory=dict)

    def trace(self, queues: Sequence[DescribedQueue], failed: Sequence[Arn]) -> None:
        """Find the target of each source, also of stored sources, and put the results into this object.

        `queues`: the source queues. `failed`: the ARNs of other sources that a person named.

        Raises:
            QueueUnreachable: AWS did not answer about a queue or a subscription.
        """
        for seen in queues:
            self._lead(seen.facts.arn, partial(_itself, seen))
        for arn in failed:
            self._lead(arn.text, partial(default_target, arn, role=self.role))
        for source in self.known.keys() - self.ways.keys() - {dead_end.source for dead_end in self.nowhere}:
            self._lead(source, partial(self._before, source))

    def _lead(self, source: str, by_itself: Callable[[], DescribedQueue | Target | NoTarget]) -> None:
        meant = not self.meant or source in self.meant
        before = self.known.get(source)
        if meant and self.to is not None:
            found: DescribedQueue | Target | NoTarget = self._reached(self.to)
        elif before is None or before.arn == source or (meant and self.takes_back):
            found = by_itself()
        else:
            found = self._reached(before)
        match found:
            case DescribedQueue():
                self.ways[source] = found.facts.arn
                self.queues[found.facts.arn] = found
            case Target():
                self.ways[source] = found.arn
                self.others[found.arn] = found
            case NoTarget():
                self.nowhere.append(found)

    def _reached(self, target: Target) -> DescribedQueue | Target:
        if target.kind not in QUEUE_KINDS:
            return target
        known = self.queues.get(target.arn)
        return known or describe_queue(QueueAddress(target.url, target.region, target.role_arn))

    def _before(self, source: str) -> DescribedQueue | Target | NoTarget:
        """Return the target of a stored source that neither SQS nor a person named now.

        If the source is its own target, return the stored target without asking SQS: the queue may be deleted.
        """
        arn, target = read(source), self.known[source]
        return target if target.arn == source or arn is None else default_target(arn, role=self.role)


def _itself(seen: DescribedQueue) -> DescribedQueue:
    return seen
