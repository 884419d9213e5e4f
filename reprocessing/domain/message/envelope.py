"""What a queue hands over and what goes back: bytes, attributes of every type, and nothing else."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_MILLISECONDS: Final = re.compile(r"[0-9]{1,14}")  # to the year 5138
_COUNT: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One message attribute.

    Attributes:
        type: AWS's data type with its custom label: "String", "Number.int", "Binary.png".
        value: bytes where the type begins with Binary, else text.
    """

    type: str
    value: str | bytes


Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One copy of a message, as a receive handed it over.

    Attributes:
        system: SQS's own attributes by name: SentTimestamp, ApproximateReceiveCount, DeadLetterQueueSourceArn,
            MessageGroupId, SequenceNumber, AWSTraceHeader and so on.
    """

    message_id: str
    handle: str
    body: bytes
    attributes: Attributes
    system: Mapping[str, str]

    @property
    def sent_at(self) -> datetime:
        """When it was sent first; the beginning of 1970 where SQS names no time."""
        text = self.system.get("SentTimestamp", "")
        return datetime.fromtimestamp(int(text) / 1000 if _MILLISECONDS.fullmatch(text) else 0, tz=UTC)

    @property
    def receives(self) -> int:
        """How often SQS says that it was received; 0 where it says no number."""
        text = self.system.get("ApproximateReceiveCount", "")
        return int(text) if _COUNT.fullmatch(text) else 0


@dataclass(frozen=True, slots=True)
class Departure:
    """One letter on its way to a queue.

    Attributes:
        attempt: the id of the attempt; what became of it is reported under it.
    """

    attempt: int
    body: bytes
    attributes: Attributes
    group_id: str | None = None
    deduplication_id: str | None = None
    trace_header: str | None = None


def pack(attributes: Attributes) -> bytes:
    """The attributes as bytes that `unpack` turns back, exactly; equal attributes give equal bytes."""
    rows: dict[str, list[str]] = {}
    for name in sorted(attributes):
        one = attributes[name]
        if isinstance(one.value, bytes):
            rows[name] = [one.type, "b", base64.b64encode(one.value).decode()]
        else:
            rows[name] = [one.type, "s", one.value]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack(packed: bytes) -> dict[str, Attribute]:
    """The attributes that `pack` made bytes of."""
    rows: dict[str, Any] = json.loads(packed)
    return {
        name: Attribute(kind, base64.b64decode(value) if form == "b" else value)
        for name, (kind, form, value) in rows.items()
    }
