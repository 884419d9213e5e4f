"""The ids that name a message in a report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MARK: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Names:
    """SQS's id of a message, and the message's redrive id with the attempt. One id is enough."""

    message_id: str | None = None
    redrive_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.message_id or self.redrive_id)


def names_of(message: Mapping[str, Any], *, attribute: str = "RedriveId") -> Names:
    """Return the ids of a boto3 message; an attribute that is no redrive id is ignored.

    Receive with `MessageAttributeNames=["RedriveId"]` to get the redrive id.
    """
    mark = (message.get("MessageAttributes") or {}).get(attribute) or {}
    message_id, redrive_id = message.get("MessageId"), mark.get("StringValue")
    return Names(
        message_id if isinstance(message_id, str) and message_id else None,
        redrive_id if isinstance(redrive_id, str) and _MARK.fullmatch(redrive_id) else None,
    )
