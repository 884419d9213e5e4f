"""Sign the body of an HTTP request, as Standard Webhooks describes (version 1, symmetric keys).

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime


def headers(key: bytes, *, message_id: str, now: datetime, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the three headers that sign a body. Receivers usually refuse a request whose `now` is 5 minutes old.

    `message_id` is the same for all attempts of a letter, and contains no full stop.
    """
    moment = str(int(now.timestamp()))
    signed = hmac.digest(key, b".".join((message_id.encode(), moment.encode(), body)), hashlib.sha256)
    return (
        ("webhook-id", message_id),
        ("webhook-timestamp", moment),
        ("webhook-signature", f"v1,{base64.b64encode(signed).decode()}"),
    )
