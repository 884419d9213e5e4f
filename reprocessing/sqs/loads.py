"""How letters are packed into requests: by number, by bytes, and a FIFO group's letters one behind the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reprocessing.domain.envelope import Attributes, Departure
from reprocessing.domain.verdict import Refused

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef, SendMessageBatchRequestEntryTypeDef

#: What one request takes, and what any queue takes of one message at most: bytes of bodies and attributes.
LARGEST: Final = 1_048_576
_MOST_ENTRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Parcel:
    """One letter, ready to be put into a request.

    Attributes:
        text: its body, as the API wants it.
        size: bytes, as SQS counts them.
    """

    departure: Departure
    text: str
    size: int

    def entry(self, number: int, *, fifo: bool) -> SendMessageBatchRequestEntryTypeDef:
        """The letter as entry `number` of a request; a standard queue refuses deduplication ids, so it gets none."""
        departure = self.departure
        entry: SendMessageBatchRequestEntryTypeDef = {"Id": str(number), "MessageBody": self.text}
        if departure.attributes:
            entry["MessageAttributes"] = _as_aws_has_them(departure.attributes)
        if departure.group_id is not None:
            entry["MessageGroupId"] = departure.group_id
        if departure.deduplication_id is not None and fifo:
            entry["MessageDeduplicationId"] = departure.deduplication_id
        if departure.trace_header is not None:
            entry["MessageSystemAttributes"] = {
                "AWSTraceHeader": {"DataType": "String", "StringValue": departure.trace_header}
            }
        return entry


Load = list[Parcel]


def parcel(departure: Departure, *, fifo: bool) -> Parcel | Refused:
    """The letter made ready, or why no queue of this kind would ever take it."""
    try:
        text = departure.body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return Refused("InvalidMessageContents", "Its body is not UTF-8, which a queue cannot carry.", poison=True)
    size = size_of(departure.body, departure.attributes)
    if size > LARGEST:
        said = f"With its attributes it has {size} bytes; SQS takes {LARGEST} at most."
        return Refused("MessageTooLong", said, poison=True)
    if fifo and not departure.group_id:
        # The letter is as good as any; the target needs to be told where to take a group from.
        return Refused("MissingParameter", "A FIFO queue needs a group id, and the letter was given none.")
    return Parcel(departure, text, size)


def size_of(body: bytes, attributes: Attributes) -> int:
    """The bytes that SQS counts: the body, and names, types and values of the attributes."""
    return len(body) + sum(
        len(_encoded(name)) + len(_encoded(one.type)) + len(_encoded(one.value)) for name, one in attributes.items()
    )


def chains(parcels: Iterable[Parcel], *, fifo: bool, largest: int = LARGEST) -> list[list[Load]]:
    """Loads of at most ten letters and a MiB, in chains: a chain's loads go one after another, chains side by side.

    The letters of a FIFO group keep their order and are in one load, or in one chain where a load cannot hold them.
    A letter that is larger than the queue is said to take (`largest`) travels alone: what is said may have changed.
    """
    made: list[list[Load]] = []
    room, space = 0, 0
    for unit in _units(parcels, fifo=fifo):
        weight = sum(_weight(one, largest) for one in unit)
        if len(unit) > _MOST_ENTRIES or weight > LARGEST:
            made.append(_cut(unit, largest))
            room = 0  # nothing joins a chain's last load
        elif len(unit) <= room and weight <= space:
            made[-1][-1].extend(unit)
            room, space = room - len(unit), space - weight
        else:
            made.append([list(unit)])
            room, space = _MOST_ENTRIES - len(unit), LARGEST - weight
    return made


def _units(parcels: Iterable[Parcel], *, fifo: bool) -> Iterable[Sequence[Parcel]]:
    if not fifo:
        return [[one] for one in parcels]
    groups: dict[str | None, list[Parcel]] = {}
    for one in parcels:
        groups.setdefault(one.departure.group_id, []).append(one)
    return groups.values()


def _cut(unit: Sequence[Parcel], largest: int) -> list[Load]:
    """One group's letters as loads, in order."""
    loads: list[Load] = [[]]
    space = LARGEST
    for one in unit:
        weight = _weight(one, largest)
        if loads[-1] and (len(loads[-1]) == _MOST_ENTRIES or weight > space):
            loads.append([])
            space = LARGEST
        loads[-1].append(one)
        space -= weight
    return loads


def _weight(one: Parcel, largest: int) -> int:
    return LARGEST if one.size > largest else one.size


def _encoded(part: str | bytes) -> bytes:
    return part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")


def _as_aws_has_them(attributes: Attributes) -> dict[str, MessageAttributeValueTypeDef]:
    return {
        name: {"DataType": one.type, "BinaryValue": one.value}
        if isinstance(one.value, bytes)
        else {"DataType": one.type, "StringValue": one.value}
        for name, one in attributes.items()
    }
