"""Define the ids by which a report names a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_MARK: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Names:
    """SQS's message id, and the value of the attribute RedriveId (id, colon, number of the attempt). One is enough."""

    message_id: str | None = None
    redrive_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.message_id or self.redrive_id)


def names_of(message: Mapping[str, Any], *, attribute: str = "RedriveId") -> Names:
    """Return the ids of a boto3 message. If the attribute is not a redrive id, it is ignored.

    To get the redrive id, receive with `MessageAttributeNames=["RedriveId"]`.
    """
    mark = (message.get("MessageAttributes") or {}).get(attribute) or {}
    message_id, redrive_id = message.get("MessageId"), mark.get("StringValue")
    return Names(
        message_id if isinstance(message_id, str) and message_id else None,
        redrive_id if isinstance(redrive_id, str) and _MARK.fullmatch(redrive_id) else None,
    )
