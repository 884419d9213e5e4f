"""Make secret tokens for the HTTP API and for consumers that report outcomes. Only a token's digest is stored."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

_BYTES: Final = 32  # random bytes of a token
_LONGEST: Final = 200


def new_token(prefix: str) -> str:
    """Return a random token that begins with the prefix, by which people and secret scanners recognise it."""
    return prefix + secrets.token_urlsafe(_BYTES)


def can_be_token(text: str) -> bool:
    """Return whether a text could be a token: it has 1 to 200 characters."""
    return 0 < len(text) <= _LONGEST


def token_digest(token: str) -> bytes:
    """Return the digest by which a token is looked up. The token itself is not stored."""
    return hashlib.sha256(token.encode(errors="replace")).digest()
