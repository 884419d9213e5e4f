"""The payload keys: local keys, and keys in AWS KMS. They encrypt (wrap) the data keys, which encrypt payloads."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.payloads.sealing import KEY_BYTES

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_KMS: Final = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]{1,256}")
_NONCE: Final = 12


class WrappingKey(Protocol):
    """A key that encrypts (wraps) data keys. A data key can be unwrapped only with the `context` of its wrapping."""

    def wrap(self, secret: bytes, context: str) -> bytes:
        """Return a data key (`secret`), encrypted with this key."""

    def unwrap(self, wrapped: bytes, context: str) -> bytes:
        """Return a data key that this key wrapped. Raise PayloadKeyUnavailable if another key wrapped it."""


@dataclass(frozen=True, slots=True)
class KmsKeyName:
    """The ARN of a key in AWS KMS."""

    arn: str

    @property
    def region(self) -> str:
        """Return the key's AWS region."""
        return self.arn.split(":")[3]


@dataclass(frozen=True, slots=True)
class LocalKey:
    """A key from the environment or a secret file: 32 bytes."""

    name: str
    secret: bytes = field(repr=False)

    def wrap(self, secret: bytes, context: str) -> bytes:
        """Return a data key (`secret`), encrypted with this key by AES-256-GCM."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + AESGCM(self.secret).encrypt(nonce, secret, context.encode())

    def unwrap(self, wrapped: bytes, context: str) -> bytes:
        """Return a data key that this key wrapped. Raise PayloadKeyUnavailable if another key wrapped it."""
        try:
            return AESGCM(self.secret).decrypt(wrapped[:_NONCE], wrapped[_NONCE:], context.encode())
        except (InvalidTag, ValueError):
            raise PayloadKeyUnavailable(
                f"The payload key {self.name} does not fit: another key had this name when messages were captured. Put "
                "the former key back into REDRIVE_PAYLOAD_KEYS under this name."
            ) from None


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The wrapping keys by name. The first key wraps new data keys; each key unwraps the data keys that it wrapped."""

    keys: Mapping[str, WrappingKey]

    @property
    def first(self) -> str:
        """Return the name of the key that wraps new data keys."""
        return next(iter(self.keys))

    def wrap(self, secret: bytes, context: str) -> tuple[str, bytes]:
        """Return the name of the first key, and a data key (`secret`) that this key has wrapped."""
        return self.first, self.keys[self.first].wrap(secret, context)

    def unwrap(self, name: str, wrapped: bytes, context: str) -> bytes:
        """Return a data key that the key `name` wrapped, or raise PayloadKeyUnavailable."""
        if name not in self.keys:
            raise PayloadKeyUnavailable(
                f"REDRIVE_PAYLOAD_KEYS has no key {name}, which sealed this message. Add the key {name} again, behind "
                "the first key."
            )
        return self.keys[name].unwrap(wrapped, context)


#: The key ring of a process without payload keys.
NO_KEYS: Final = KeyRing({})


def key_problems(entries: Iterable[str]) -> list[str]:
    """Return what is wrong with payload keys, each written as NAME=KEY; empty: all are valid. No key is quoted."""
    found: list[str] = []
    names: set[str] = set()
    for entry in entries:
        name, _, text = entry.partition("=")
        if not _NAME.fullmatch(name) or not text:
            found.append("each key is NAME=KEY; a name is lower case, digits, dots and hyphens, as in 2026-01")
        elif name in names:
            found.append(f"the name {name} is there twice")
        elif read_key(entry) is None:
            found.append(
                f"the key {name} is neither 32 bytes in base64 (openssl rand -base64 32) nor the ARN of a KMS key"
            )
        names.add(name)
    return found


def read_key(entry: str) -> LocalKey | KmsKeyName | None:
    """Return the payload key of an entry NAME=KEY; None: KEY is neither 32 bytes in base64 nor a KMS key's ARN."""
    name, _, text = entry.partition("=")
    if _KMS.fullmatch(text):
        return KmsKeyName(text)
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return LocalKey(name, secret) if len(secret) == KEY_BYTES else None
