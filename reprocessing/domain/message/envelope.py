"""Define messages as SQS delivers and accepts them, and pack their attributes as bytes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_MILLISECONDS: Final = re.compile(r"[0-9]{1,14}")  # times up to the year 5138
_COUNT: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Attribute:
    """A message attribute. `type` is String, Number or Binary, with an optional label. For Binary, `value` is bytes."""

    type: str
    value: str | bytes


Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as SQS delivered it. `handle`: the receipt handle; `system`: SQS's own attributes, such as SenderId."""

    message_id: str
    handle: str
    body: bytes
    attributes: Attributes
    system: Mapping[str, str]

    @property
    def sent_at(self) -> datetime:
        """Return when the message was first sent; the beginning of 1970 if SQS does not say."""
        text = self.system.get("SentTimestamp", "")
        return datetime.fromtimestamp(int(text) / 1000 if _MILLISECONDS.fullmatch(text) else 0, tz=UTC)

    @property
    def receives(self) -> int:
        """Return how often SQS has delivered the message; 0 if SQS does not say."""
        text = self.system.get("ApproximateReceiveCount", "")
        return int(text) if _COUNT.fullmatch(text) else 0


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A letter to send to an SQS queue.

    `attempt`: the attempt's id, by which the caller finds the outcome. `trace_header`: the X-Ray header.
    """

    attempt: int
    body: bytes
    attributes: Attributes
    group_id: str | None = None
    deduplication_id: str | None = None
    trace_header: str | None = None


def pack_attributes(attributes: Attributes) -> bytes:
    """Return message attributes as bytes, which `unpack_attributes` reads. Equal attributes give equal bytes."""
    rows: dict[str, list[str]] = {}
    for name in sorted(attributes):
        attribute = attributes[name]
        if isinstance(attribute.value, bytes):
            rows[name] = [attribute.type, "b", base64.b64encode(attribute.value).decode()]
        else:
            rows[name] = [attribute.type, "s", attribute.value]
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack_attributes(packed: bytes) -> dict[str, Attribute]:
    """Return the attributes that `pack_attributes` packed."""
    rows: dict[str, Any] = json.loads(packed)
    return {
        name: Attribute(kind, base64.b64decode(value) if form == "b" else value)
        for name, (kind, form, value) in rows.items()
    }
