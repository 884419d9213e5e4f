"""Find the source of a letter: the queue, function, subscription or rule where the letter failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reprocessing.domain.message import arn
from reprocessing.domain.message.arn import ResourceKind
from reprocessing.domain.message.envelope import Attributes, unpack_attributes
from reprocessing.domain.sources import failed_delivery
from reprocessing.domain.sources.failed_delivery import FailedDelivery, FailedDeliveryKind
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.models import DeadLetterQueue, Source
from reprocessing.store.ordering.placement import LetterWithoutSource, UnplacedLetter

#: The SQS system attribute that names the source queue of a message in a DLQ.
_DIED_IN = "DeadLetterQueueSourceArn"


class Sources:
    """The registered sources of a DLQ. Finds the source of each letter.

    If a letter does not name its source, the source is the DLQ's only source, or else its default source.
    """

    def __init__(self, dlq: DeadLetterQueue) -> None:
        known = list(Source.objects.filter(dlq=dlq).select_related("target"))
        self._by_arn = {source.arn: source for source in known}
        default = next((source for source in known if source.pk == dlq.default_source_id), None)
        self._else = known[0] if len(known) == 1 else default

    def of(self, body: bytes, attributes: Attributes, system: Mapping[str, str]) -> Source | None:
        """Return the registered source of a message.

        None: the message names a source that is not registered, or names none, and the DLQ has no source for such
        messages. `system`: the SQS system attributes of the message.
        """
        if died_in := system.get(_DIED_IN):
            return self._by_arn.get(died_in)
        found = failed_delivery.recognise(body, attributes, system)
        if found is None:
            return self._else
        if found.failed:
            return self._by_arn.get(found.failed)
        return self._else if self._else is not None and _fits(self._else, found) else None

    def trace(self, letters: Iterable[UnplacedLetter | LetterWithoutSource]) -> dict[int, int]:
        """Return the id of each letter's source, by letter id. Letters whose source is not known are left out."""
        found = {
            letter.id: self.of(bytes(letter.body), unpack_attributes(bytes(letter.attributes)), letter.system)
            for letter in letters
        }
        return {letter: source.pk for letter, source in found.items() if source is not None}


def source_arn(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> str:
    """Return the ARN of the source that a message names; empty: the message names no source."""
    found = failed_delivery.recognise(body, attributes, system)
    return system.get(_DIED_IN) or (found.failed if found else "")


def describe_source(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> str:
    """Return a phrase that says what a message tells of its unknown source; empty: it tells nothing.

    The phrase helps the person who registers sources.
    """
    if named := system.get(_DIED_IN):
        return f"it failed in {named}"
    found = failed_delivery.recognise(body, attributes, system)
    if found is None:
        return ""
    if found.failed:
        return f"it failed in {found.failed}"
    return f"it comes from {_SOURCES[found.kind]}, but does not name it"


_SOURCES = {
    FailedDeliveryKind.LAMBDA: "a Lambda function",
    FailedDeliveryKind.LAMBDA_DESTINATION: "a Lambda function",
    FailedDeliveryKind.SNS: "an SNS subscription",
    FailedDeliveryKind.EVENTBRIDGE: "an EventBridge rule",
    FailedDeliveryKind.SCHEDULER: "an EventBridge schedule",
}


def _fits(source: Source, found: FailedDelivery) -> bool:
    named = arn.read(source.arn)
    if found.kind is FailedDeliveryKind.LAMBDA:
        return source.target.kind == TargetKind.LAMBDA or (named is not None and named.named is ResourceKind.FUNCTION)
    return source.target.kind not in QUEUE_KINDS or (named is not None and named.named is ResourceKind.SUBSCRIPTION)
