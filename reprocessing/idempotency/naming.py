"""What a claim is called, what it is for, and why it failed: texts that PostgreSQL can keep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from reprocessing.idempotency.conf import LONGEST_KEY, LONGEST_SPACE
from reprocessing.idempotency.errors import ClaimIsUnclear

LONGEST_MESSAGE: Final = 2_000
_LONGEST: Final = {"space": LONGEST_SPACE, "key": LONGEST_KEY}


def named(value: object, what: str) -> str:
    """The text of a key or of a space.

    Raises:
        ClaimIsUnclear: it says nothing, or cannot be kept. The value is not quoted.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise ClaimIsUnclear(f"The {what} is a {type(value).__name__}. Give a text, a number or a UUID.")
    text = str(value)
    if not text.strip():
        raise ClaimIsUnclear(f"The {what} is empty: all work would be one. Give one that is its own.")
    if text != _kept(text):
        raise ClaimIsUnclear(f"The {what} holds a zero byte, or is not Unicode. Take it out, or give a digest instead.")
    if len(text) > _LONGEST[what]:
        raise ClaimIsUnclear(f"The {what} has {len(text):,} characters of {_LONGEST[what]}. Give a digest instead.")
    return text


def digest(payload: object) -> bytes | None:
    """The SHA-256 of a payload: of bytes and texts as they are, else of its JSON with sorted keys. None for None.

    Raises:
        ClaimIsUnclear: JSON does not know it.
    """
    match payload:
        case None:
            return None
        case bytes() | bytearray() | memoryview():
            raw = bytes(payload)
        case str():
            raw = payload.encode(errors="surrogatepass")
        case _:
            try:
                raw = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError):
                raise ClaimIsUnclear(
                    f"The payload, a {type(payload).__name__}, is not JSON. Give bytes, a text, or what JSON knows."
                ) from None
    return hashlib.sha256(raw).digest()


def evidence(error: BaseException, *, messages: bool) -> tuple[str, str]:
    """An exception's type, and its text where that may be kept."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error) if messages else ""
    except Exception:  # noqa: BLE001  # an exception that cannot be told is no reason to lose it
        text = "(its text could not be had)"
    return _kept(name[:LONGEST_MESSAGE]), _kept(text[:LONGEST_MESSAGE])


def message_key(message: Mapping[str, Any], *, attribute: str = "IdempotencyKey") -> str:
    """The key of a message as boto3 gives it: the attribute that the redrive service adds, else the message's own id.

    The service's default key is the id under which the message died; so first delivery and replays have one key.
    Receive with `MessageAttributeNames=["IdempotencyKey"]`: SQS gives no attribute that was not asked for.
    """
    added = (message.get("MessageAttributes") or {}).get(attribute) or {}
    return str(added.get("StringValue") or message["MessageId"])


def task_key(request: Any, *, attribute: str = "IdempotencyKey") -> str:  # noqa: ANN401  # Celery has no type for it
    """`message_key` of the SQS message that a bound Celery task came in: `task_key(self.request)`.

    Needs the broker transport option `fetch_message_attributes={"MessageAttributeNames": ["IdempotencyKey"]}`. Where
    tasks call `retry()`, take the task's id instead: each retry is a message of its own.

    Raises:
        ClaimIsUnclear: the task did not come from SQS.
    """
    delivery = (getattr(request, "properties", None) or {}).get("delivery_info") or {}
    message = delivery.get("sqs_message")
    if not message:
        raise ClaimIsUnclear("The task did not come in an SQS message, so it has no such key. Take the task's id.")
    return message_key(message, attribute=attribute)


def _kept(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()
