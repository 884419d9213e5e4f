"""Encrypt (seal) bytes with a data key by AES-256-GCM, and decrypt (open) sealed bytes.

Sealed bytes: 0xFF 0x01, the id of the data key (8 bytes), the nonce (12), the ciphertext, the tag (16). No message body
begins with 0xFF, because SQS accepts only text. This distinguishes sealed bytes from readable bytes.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reprocessing.domain.errors import PayloadUnreadable

#: The bytes with which all sealed bytes begin.
MAGIC: Final = b"\xff\x01"
KEY_BYTES: Final = 32
_NONCE: Final = 12
_HEAD: Final = len(MAGIC) + 8
#: Number of bytes by which sealed bytes are longer than their content.
OVERHEAD: Final = _HEAD + _NONCE + 16
_TEXT: Final = "\x1a"  # the first character of sealed text


class Part(StrEnum):
    """The kind of content that is sealed. Content that was sealed as one part cannot be opened as another part."""

    BODY = "body"
    ATTRIBUTES = "attributes"
    SYSTEM = "system"
    REPORT = "report"
    FILTER = "filter"
    ANSWER = "answer"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class DataKey:
    """A data key, which encrypts payloads: its id in the database, and its 32 bytes (`secret`)."""

    id: int
    secret: bytes = field(repr=False)
    cipher: AESGCM = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cipher", AESGCM(self.secret))

    def digest(self, content: bytes) -> bytes:
        """Return an HMAC-SHA256 of the content. Without the key, nobody can test whether a guessed content is right."""
        return hmac.digest(self.secret, b"digest\0" + content, "sha256")


def new_secret() -> bytes:
    """Return the 32 random bytes of a new data key."""
    return AESGCM.generate_key(8 * KEY_BYTES)


def seal(key: DataKey, content: bytes, *, part: Part, of: str) -> bytes:
    """Return the encrypted content. `open_sealed` needs the same `part`, and `of` (the owner, such as a message id)."""
    head = MAGIC + key.id.to_bytes(8, "big")
    nonce = secrets.token_bytes(_NONCE)
    return head + nonce + key.cipher.encrypt(nonce, content, _context(head, part, of))


def key_id(content: bytes) -> int | None:
    """Return the id of the data key that sealed these bytes; None: they are not sealed."""
    return int.from_bytes(content[len(MAGIC) : _HEAD], "big") if content.startswith(MAGIC) else None


def open_sealed(key: DataKey, sealed: bytes, *, part: Part, of: str) -> bytes:
    """Return the content of sealed bytes.

    Raise PayloadUnreadable if the bytes were changed, or were sealed with another `key`, `part` or `of`.
    """
    head, nonce = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE]
    try:
        return key.cipher.decrypt(nonce, sealed[_HEAD + _NONCE :], _context(head, part, of))
    except (InvalidTag, ValueError):
        raise changed(part) from None


def changed(part: Part) -> PayloadUnreadable:
    """Return the exception to raise if the sealed bytes of a part were changed."""
    return PayloadUnreadable(
        f"The sealed {part} was changed in the database, or belongs to another message. Restore it from a backup."
    )


def to_text(sealed: bytes) -> str:
    """Return sealed bytes as text, for a column that holds text."""
    return _TEXT + base64.b64encode(sealed).decode()


def from_text(text: str) -> bytes | None:
    """Return the sealed bytes that `to_text` wrote as text; None: the text is not sealed."""
    if not text.startswith(_TEXT):
        return None
    try:
        found = base64.b64decode(text[1:], validate=True)
    except ValueError:
        return None
    return found if key_id(found) is not None else None


def _context(head: bytes, part: Part, of: str) -> bytes:
    return head + f"{part}\0{of}".encode(errors="surrogatepass")
