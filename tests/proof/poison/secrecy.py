"""Whether a text that people are shown, or that is logged, quotes a payload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from tests.proof.poison.corpus import Payload

#: So many characters in a row are no accident; looked for at every `STRIDE`th place, in a payload's first and last.
WINDOW: Final = 12
STRIDE: Final = 5
ENDS: Final = 5_000
_LEAST_LETTERS: Final = 4  #: of a row of equal ones nobody knows whose they are


def quoted(texts: str | Iterable[str], payload: Payload) -> str:
    """The first words of a payload that stand in one of the texts; none where nothing of it does."""
    held = [payload.body, *(one for _, one in payload.attributes.values() if isinstance(one, str))]
    ends = [one if len(one) <= 2 * ENDS else f"{one[:ENDS]}\0{one[-ENDS:]}" for one in held if len(one) >= WINDOW]
    for one in [texts] if isinstance(texts, str) else texts:
        for at in range(0, len(one) - WINDOW + 1 if ends else 0, STRIDE):
            words = one[at : at + WINDOW]
            if len(set(words)) >= _LEAST_LETTERS and any(words in each for each in ends):
                return words
    return ""


def values_of(told: str) -> list[str]:
    """The texts in an answer in JSON, whose own marks and names are nobody's payload."""
    return list(_texts(json.loads(told)))


def _texts(one: object) -> Iterator[str]:
    match one:
        case str():
            yield one
        case dict():
            yield from (text for each in one.values() for text in _texts(each))
        case list():
            yield from (text for each in one for text in _texts(each))
