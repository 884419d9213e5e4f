"""The corpus: payloads and attribute sets that SQS takes as messages, each of them odd somehow, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.proof.poison.corpus import (
    attributes,
    celery_tasks,
    characters,
    disguises,
    injections,
    json_traps,
    keys,
    notices,
    sizes,
)
from tests.proof.poison.corpus.payload import Payload

__all__ = ["CORPUS", "Payload"]


def _by_name(some: Iterable[Payload]) -> dict[str, Payload]:
    found: dict[str, Payload] = {}
    for one in some:
        if one.name in found:
            raise ValueError(f"two payloads are called {one.name}")
        found[one.name] = one
    return found


CORPUS: Final = _by_name(
    [
        *json_traps.some(),
        *characters.some(),
        *disguises.some(),
        *injections.some(),
        *attributes.some(),
        *keys.some(),
        *celery_tasks.some(),
        *notices.some(),
        *sizes.some(),
    ]
)
