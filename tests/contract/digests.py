"""MD5 digests as AWS describes them, computed without looking at any server.

Source: "Message metadata", Calculating the MD5 message digest for message attributes, SQS Developer Guide.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any


def body_digest(body: str) -> str:
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()


def attributes_digest(attributes: Mapping[str, Any]) -> str:
    """Per attribute, by name: name, type, a byte for the transport type (1 text, 2 binary), value; lengths first."""
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        value = attributes[name]
        text = value.get("StringValue")
        transport, raw = (b"\x02", value["BinaryValue"]) if text is None else (b"\x01", text.encode())
        digest.update(_sized(name.encode()) + _sized(value["DataType"].encode()) + transport + _sized(raw))
    return digest.hexdigest()


def _sized(raw: bytes) -> bytes:
    return struct.pack("!I", len(raw)) + raw
