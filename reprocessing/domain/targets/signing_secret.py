"""Read and check the secrets that sign requests to endpoints."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

#: Min bytes of a secret (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
LEAST_BYTES: Final = 24
#: Prefix of a secret in base64.
PREFIX: Final = "whsec_"

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def secret_bytes(secret: str) -> bytes | None:
    """Return the signing key: the base64 after "whsec_", or else the bytes of the text. None: the base64 is invalid."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        return None


def secret_problem(name: str, secret: str) -> str | None:
    """Return what is wrong with a secret, without quoting the secret; None: the secret can be used."""
    if not _NAME.fullmatch(name) or name.startswith(PREFIX):
        return "the name of a secret takes 1 to 64 letters, digits, hyphens and underscores: NAME=whsec_…"
    found = secret_bytes(secret)
    if found is None:
        return f"{name} begins with {PREFIX}, but the rest is not base64"
    if len(found) < LEAST_BYTES:
        return f"{name} is shorter than {LEAST_BYTES} bytes"
    return None
