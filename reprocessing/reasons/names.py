"""Define `Names`, the ids by which a report identifies a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: The value of the attribute RedriveId: a UUID, a colon, and the number of the attempt.
_MARK: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Names:
    """The ids of a message: SQS's message id, and the value of the attribute RedriveId. One of the two is enough.

    The value of RedriveId is the redrive id, a colon, and the number of the attempt.
    """

    message_id: str | None = None
    redrive_id: str | None = None

    def __bool__(self) -> bool:
        return bool(self.message_id or self.redrive_id)


def names_of(message: Mapping[str, Any], *, attribute: str = "RedriveId") -> Names:
    """Return the ids of a message from boto3. A value that is not a redrive id is ignored.

    To get the redrive id, receive with `MessageAttributeNames=["RedriveId"]`.
    """
    mark = (message.get("MessageAttributes") or {}).get(attribute) or {}
    message_id, redrive_id = message.get("MessageId"), mark.get("StringValue")
    return Names(
        message_id if isinstance(message_id, str) and message_id else None,
        redrive_id if isinstance(redrive_id, str) and _MARK.fullmatch(redrive_id) else None,
    )
