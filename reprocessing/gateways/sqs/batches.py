"""Pack letters into batch requests, within SQS's limits of entries and bytes, in the order of message groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from reprocessing.domain.message.envelope import Attributes, OutgoingMessage
from reprocessing.domain.replay.verdicts import Refused

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef, SendMessageBatchRequestEntryTypeDef

#: Most bytes of one request, and of one message, with attributes: 1 MiB.
LARGEST: Final = 1_048_576
_MOST_ENTRIES: Final = 10  #: most messages in one request


class Item(Protocol):
    """The interface of a letter that can be packed into a batch."""

    @property
    def attempt(self) -> int:
        """The id of the letter's attempt."""

    @property
    def group(self) -> str | None:
        """The letter's FIFO message group; None if it has none."""

    @property
    def size(self) -> int:
        """The letter's size in bytes, as the target counts it."""


Packed = TypeVar("Packed", bound=Item)


@dataclass(frozen=True, slots=True)
class PackedMessage:
    """One letter, ready to be put into a request.

    Attributes:
        message: the letter as it is to be sent.
        text: the body as text, for the API.
        size: size in bytes, as SQS counts it.
    """

    message: OutgoingMessage
    text: str
    size: int

    @property
    def attempt(self) -> int:
        """The id of the letter's attempt."""
        return self.message.attempt

    @property
    def group(self) -> str | None:
        """The letter's FIFO message group; None if it has none."""
        return self.message.group_id

    def entry(self, number: int, *, fifo: bool) -> SendMessageBatchRequestEntryTypeDef:
        """Return the letter as entry `number` of a request.

        `fifo`: the target is a FIFO queue, so add the deduplication id.
        """
        message = self.message
        entry: SendMessageBatchRequestEntryTypeDef = {"Id": str(number), "MessageBody": self.text}
        if message.attributes:
            entry["MessageAttributes"] = to_aws_attributes(message.attributes)
        if message.group_id is not None:
            entry["MessageGroupId"] = message.group_id
        if message.deduplication_id is not None and fifo:
            entry["MessageDeduplicationId"] = message.deduplication_id
        if message.trace_header is not None:
            entry["MessageSystemAttributes"] = {
                "AWSTraceHeader": {"DataType": "String", "StringValue": message.trace_header}
            }
        return entry


Batch = list[PackedMessage]


def pack(message: OutgoingMessage, *, fifo: bool) -> PackedMessage | Refused:
    """Return the letter, ready to be sent to a FIFO queue (`fifo`) or a standard queue; Refused: it cannot be sent.

    Refused letters have a body that is not UTF-8, a size above 1 MiB, or no message group for a FIFO queue.
    """
    try:
        text = message.body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return Refused("InvalidMessageContents", "Its body is not UTF-8, which a queue cannot carry.", poison=True)
    size = size_of(message.body, message.attributes)
    if size > LARGEST:
        said = f"With its attributes it has {size} bytes; SQS takes {LARGEST} at most."
        return Refused("MessageTooLong", said, poison=True)
    if fifo and not message.group_id:
        # Not poison: the letter is valid, but the target's settings give it no group.
        return Refused("MissingParameter", "A FIFO queue needs a group id, and the message has none.")
    return PackedMessage(message, text, size)


def size_of(body: bytes, attributes: Attributes) -> int:
    """Return the size as SQS counts it: the body, and the names, types and values of the attributes."""
    return len(body) + sum(
        len(_encoded(name)) + len(_encoded(attribute.type)) + len(_encoded(attribute.value))
        for name, attribute in attributes.items()
    )


def batch_chains(
    items: Iterable[Packed], *, fifo: bool, largest: int = LARGEST, space: int = LARGEST
) -> list[list[list[Packed]]]:
    """Return chains of batches of letters. A batch has up to ten letters and `space` bytes.

    The caller sends the batches of one chain one after another. Different chains may be sent in parallel. Letters of
    one FIFO message group are in order in one batch, or in one chain if a batch is too small. A letter larger than
    `largest`, the queue's known limit, is alone in its batch, so that no other letter is refused with it.
    """
    made: list[list[list[Packed]]] = []
    room, left = 0, 0
    for unit in _units(items, fifo=fifo):
        weight = sum(_weight(item, largest, space) for item in unit)
        if len(unit) > _MOST_ENTRIES or weight > space:
            made.append(_cut(unit, largest, space))
            room = 0  # the last batch of a chain waits for the others, so it gets no letters of other groups
        elif len(unit) <= room and weight <= left:
            made[-1][-1].extend(unit)
            room, left = room - len(unit), left - weight
        else:
            made.append([list(unit)])
            room, left = _MOST_ENTRIES - len(unit), space - weight
    return made


def _units(items: Iterable[Packed], *, fifo: bool) -> Iterable[Sequence[Packed]]:
    if not fifo:
        return [[item] for item in items]
    groups: dict[str | None, list[Packed]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return groups.values()


def _cut(unit: Sequence[Packed], largest: int, space: int) -> list[list[Packed]]:
    """Divide letters that must be sent in order, such as a message group's letters, into batches of one chain."""
    loads: list[list[Packed]] = [[]]
    left = space
    for item in unit:
        weight = _weight(item, largest, space)
        if loads[-1] and (len(loads[-1]) == _MOST_ENTRIES or weight > left):
            loads.append([])
            left = space
        loads[-1].append(item)
        left -= weight
    return loads


def _weight(item: Packed, largest: int, space: int) -> int:
    return space if item.size > min(largest, space) else item.size


def _encoded(part: str | bytes) -> bytes:
    return part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")


def to_aws_attributes(attributes: Attributes) -> dict[str, MessageAttributeValueTypeDef]:
    """Return attributes in the form of the SQS and SNS APIs."""
    return {
        name: {"DataType": attribute.type, "BinaryValue": attribute.value}
        if isinstance(attribute.value, bytes)
        else {"DataType": attribute.type, "StringValue": attribute.value}
        for name, attribute in attributes.items()
    }
