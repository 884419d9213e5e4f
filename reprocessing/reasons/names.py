"""By which names a report calls a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Names:
    """The id that SQS gave a message, and the redrive id with its attempt, as the service put it on. One is enough."""

    message_id: str | None = None
    redrive_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.message_id or self.redrive_id)


def names_of(message: Mapping[str, Any], *, attribute: str = "RedriveId") -> Names:
    """The names of a message as boto3 gives it.

    The redrive id is there when it was asked for: receive with `MessageAttributeNames=["RedriveId"]`.
    """
    mark = (message.get("MessageAttributes") or {}).get(attribute) or {}
    return Names(_text(message.get("MessageId")), _text(mark.get("StringValue")))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
