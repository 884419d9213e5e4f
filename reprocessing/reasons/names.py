"""By which names a report calls a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MARK: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Names:
    """The id that SQS gave a message, and the redrive id with its attempt, as the service put it on. One is enough."""

    message_id: str | None = None
    redrive_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.message_id or self.redrive_id)


def names_of(message: Mapping[str, Any], *, attribute: str = "RedriveId") -> Names:
    """The names of a message as boto3 gives it.

    The redrive id is there when it was asked for: receive with `MessageAttributeNames=["RedriveId"]`. An attribute of
    that name that is none of the service's is left out: the message's id still names it.
    """
    mark = (message.get("MessageAttributes") or {}).get(attribute) or {}
    message_id, redrive_id = message.get("MessageId"), mark.get("StringValue")
    return Names(
        message_id if isinstance(message_id, str) and message_id else None,
        redrive_id if isinstance(redrive_id, str) and _MARK.fullmatch(redrive_id) else None,
    )
