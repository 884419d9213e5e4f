"""One message that is odd somehow, as a producer sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

READ: Final = 256 * 1_024  #: bytes of a body that rules read

Typed = Mapping[str, tuple[str, str | bytes]]


@dataclass(frozen=True)
class Payload:
    """A body with its attributes, by name: type and value.

    Attributes:
        group: its MessageGroupId; None: none on a standard queue, one of its own on a FIFO queue.
        trace: its trace header.
        closed: what it holds cannot be told, though others may read it: rules that ask for that hold it.
        spent: its marks say that all attempts were made, so that it is parked at once.
    """

    name: str
    body: str = field(repr=False)
    attributes: Typed = field(default_factory=dict, repr=False)
    group: str | None = None
    trace: str | None = None
    closed: bool = False
    spent: bool = False

    @property
    def size(self) -> int:
        held = (
            len(name.encode()) + len(kind.encode()) + len(value if isinstance(value, bytes) else value.encode())
            for name, (kind, value) in self.attributes.items()
        )
        return len(self.body.encode()) + sum(held)

    @property
    def guarded(self) -> bool:
        return self.closed or len(self.body.encode()) > READ

    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"MessageBody": self.body}
        if self.attributes:
            entry["MessageAttributes"] = {
                name: {"DataType": kind, "BinaryValue" if isinstance(value, bytes) else "StringValue": value}
                for name, (kind, value) in self.attributes.items()
            }
        if self.group is not None:
            entry["MessageGroupId"] = self.group
        if self.trace is not None:
            entry["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": self.trace}}
        return entry


def text(value: str) -> tuple[str, str]:
    return "String", value
