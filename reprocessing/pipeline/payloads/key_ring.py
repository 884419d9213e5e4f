"""Read the wrapping keys, which encrypt the data keys of payloads, from the setting REDRIVE_PAYLOAD_KEYS."""

from __future__ import annotations

from functools import lru_cache

from reprocessing import conf
from reprocessing.domain.payloads.key_ring import KeyRing, KmsKeyName, WrappingKey, read_key
from reprocessing.store.payloads import payload_keys


def install() -> None:
    """Give the wrapping keys of the settings to the store, which uses them to encrypt and decrypt data keys."""
    payload_keys.use_ring(_current)


def _current() -> tuple[KeyRing, float]:
    found = conf.current()
    return ring_of(found.payload_keys), found.payload_key_cache.total_seconds()


def first_key() -> str:
    """Return the name of the first key in REDRIVE_PAYLOAD_KEYS, which encrypts new data keys."""
    return _current()[0].first


@lru_cache(maxsize=8)
def ring_of(entries: tuple[str, ...]) -> KeyRing:
    """Return the keys of these entries (NAME=KEY) of REDRIVE_PAYLOAD_KEYS. Invalid entries are left out."""
    keys: dict[str, WrappingKey] = {}
    for entry in entries:
        key = read_key(entry)
        if key is not None:
            keys[entry.partition("=")[0]] = _kms_key(key) if isinstance(key, KmsKeyName) else key
    return KeyRing(keys)


def _kms_key(name: KmsKeyName) -> WrappingKey:
    from reprocessing.gateways.aws_services.kms import KmsKey  # noqa: PLC0415  # boto3 would slow down every command

    return KmsKey(name)
