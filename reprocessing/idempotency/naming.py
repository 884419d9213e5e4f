"""Turn keys, payloads and errors into values that PostgreSQL can store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from reprocessing.idempotency.conf import LONGEST_KEY, LONGEST_SPACE
from reprocessing.idempotency.errors import InvalidClaim

LONGEST_MESSAGE: Final = 2_000
_LONGEST: Final = {"space": LONGEST_SPACE, "key": LONGEST_KEY}


def key_text(value: object, what: str) -> str:
    """Return an idempotency key, or the name of its space, as text. Raise InvalidClaim if the value is not valid.

    `what`: "key" or "space", for the error's text, which does not quote the value. A value is not valid if it is empty,
    too long, or has a zero byte.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise InvalidClaim(f"The {what} is a {type(value).__name__}. Give a text, a number or a UUID.")
    text = str(value)
    if not text.strip():
        raise InvalidClaim(f"The {what} is empty. Give a value that identifies the work.")
    if text != _kept(text):
        raise InvalidClaim(f"The {what} has a zero byte, or is not Unicode. Remove it, or use a digest.")
    if len(text) > _LONGEST[what]:
        raise InvalidClaim(f"The {what} has {len(text):,} characters, more than {_LONGEST[what]}. Use a digest.")
    return text


def payload_digest(payload: object) -> bytes | None:
    """Return the SHA-256 of a payload; None if the payload is None.

    Bytes and texts are hashed as they are. Any other payload is hashed as JSON with sorted keys.

    Raises:
        InvalidClaim: the payload is not JSON.
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
                raise InvalidClaim(
                    f"The payload, a {type(payload).__name__}, is not JSON. Give bytes, a text, or a JSON value."
                ) from None
    return hashlib.sha256(raw).digest()


def error_text(error: BaseException, *, messages: bool) -> tuple[str, str]:
    """Return an exception's type and its text, each cut to 2,000 characters. `messages` False: the text is empty."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error) if messages else ""
    except Exception:  # noqa: BLE001  # an exception whose text raises is recorded, too
        text = "(its text could not be read)"
    return _kept(name[:LONGEST_MESSAGE]), _kept(text[:LONGEST_MESSAGE])


def message_key(message: Mapping[str, Any], *, attribute: str = "IdempotencyKey") -> str:
    """Return the idempotency key of a message from boto3: its attribute IdempotencyKey, else its message id.

    The redrive service adds the attribute. By default its value is the original message id, so the first delivery
    and all redrives have the same key. Receive with `MessageAttributeNames=["IdempotencyKey"]`.
    """
    added = (message.get("MessageAttributes") or {}).get(attribute) or {}
    return str(added.get("StringValue") or message["MessageId"])


def task_key(request: Any, *, attribute: str = "IdempotencyKey") -> str:  # noqa: ANN401  # Celery has no type for it
    """Return the idempotency key of a Celery task's SQS message: its attribute IdempotencyKey, else its message id.

    Call it as `task_key(self.request)`. It needs the broker transport option
    `fetch_message_attributes={"MessageAttributeNames": ["IdempotencyKey"]}`. If tasks call `retry()`, use the
    task's id as key instead, because each retry is a new message with a new id.

    Raises:
        InvalidClaim: the task did not come from SQS.
    """
    delivery = (getattr(request, "properties", None) or {}).get("delivery_info") or {}
    message = delivery.get("sqs_message")
    if not message:
        raise InvalidClaim("The task did not come in an SQS message. Use the task's id as key.")
    return message_key(message, attribute=attribute)


def _kept(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()
