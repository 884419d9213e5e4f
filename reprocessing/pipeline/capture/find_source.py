"""Find the source of a letter: the queue, function, subscription or rule that it failed in."""

from __future__ import annotations

from collections.abc import Mapping

from reprocessing.domain.message import arn
from reprocessing.domain.message.arn import Named
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.sources import failed_delivery
from reprocessing.domain.sources.failed_delivery import Shape, ShapeKind
from reprocessing.models import DeadLetterQueue, Origin
from reprocessing.models.target import QUEUES, TargetKind

_DIED_IN = "DeadLetterQueueSourceArn"


class Origins:
    """The origins of a DLQ. A letter that does not name its origin gets the only one, or else the default."""

    def __init__(self, dlq: DeadLetterQueue) -> None:
        known = list(Origin.objects.filter(dlq=dlq).select_related("target"))
        self._by_arn = {origin.arn: origin for origin in known}
        default = next((origin for origin in known if origin.pk == dlq.default_origin_id), None)
        self._else = known[0] if len(known) == 1 else default

    def of(self, body: bytes, attributes: Attributes, system: Mapping[str, str]) -> Origin | None:
        """Return the letter's origin; None when it is not known."""
        if died_in := system.get(_DIED_IN):
            return self._by_arn.get(died_in)
        found = failed_delivery.recognise(body, attributes, system)
        if found is None:
            return self._else
        if found.failed:
            return self._by_arn.get(found.failed)
        return self._else if self._else is not None and _fits(self._else, found) else None


def died_in(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> str:
    """Return the ARN of what the letter failed in; empty when the letter does not name it."""
    found = failed_delivery.recognise(body, attributes, system)
    return system.get(_DIED_IN) or (found.failed if found else "")


def told(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> str:
    """Return a sentence about a letter of unknown origin, for the person who registers that origin."""
    if named := system.get(_DIED_IN):
        return f"it failed in {named}"
    found = failed_delivery.recognise(body, attributes, system)
    if found is None:
        return ""
    if found.failed:
        return f"it failed in {found.failed}"
    return f"it comes from {_SOURCES[found.kind]}, but does not name it"


_SOURCES = {
    ShapeKind.LAMBDA: "a Lambda function",
    ShapeKind.LAMBDA_DESTINATION: "a Lambda function",
    ShapeKind.SNS: "an SNS subscription",
    ShapeKind.EVENTBRIDGE: "an EventBridge rule",
    ShapeKind.SCHEDULER: "an EventBridge schedule",
}


def _fits(origin: Origin, found: Shape) -> bool:
    named = arn.read(origin.arn)
    if found.kind is ShapeKind.LAMBDA:
        return origin.target.kind == TargetKind.LAMBDA or (named is not None and named.named is Named.FUNCTION)
    return origin.target.kind not in QUEUES or (named is not None and named.named is Named.SUBSCRIPTION)
