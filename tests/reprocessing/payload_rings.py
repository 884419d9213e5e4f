"""Keys for payloads, and fixtures that encrypt with them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from reprocessing.store.payloads import payload_keys

OLD, NEW = (
    f"{name}={base64.b64encode(name.encode() * 8 + b'-' * (32 - 8 * len(name))).decode()}" for name in ("old", "new")
)
#: Another key with the name "old".
WRONG_OLD = "old=" + base64.b64encode(b"another key with the name of old").decode()
Rings = Callable[..., None]


@pytest.fixture
def rings(settings: Settings) -> Iterator[Rings]:
    """Set the keys of this process; without keys, payloads are stored readable."""

    def use(*entries: str) -> None:
        settings.REDRIVE = {**settings.REDRIVE, "PAYLOAD_KEYS": entries}
        payload_keys.forget_unwrapped()

    payload_keys.forget_unwrapped()
    yield use
    payload_keys.forget_unwrapped()


@pytest.fixture
def encrypted(rings: Rings) -> Rings:
    """Encrypt with the key "old"."""
    rings(OLD)
    return rings
