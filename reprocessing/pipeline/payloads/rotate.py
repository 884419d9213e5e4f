"""Rotate the keys that wrap data keys, and seal what was stored readable. Both continue after a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from reprocessing.store.payloads import payload_keys, resealing
from reprocessing.store.payloads.resealing import Sealed

#: Data keys that are wrapped in one statement.
_KEYS = 100


@dataclass(slots=True)
class Rotated:
    """How many data keys were wrapped again, and how many payloads, edits and texts were sealed."""

    keys: int = 0
    payloads: int = 0
    edits: int = 0
    texts: int = 0


def rewrap_keys(told: Callable[[Rotated], None]) -> Rotated:
    """Wrap each data key with the first wrapping key. Messages are captured and sent meanwhile.

    A data key stays the same, so what it sealed need not be sealed again. Each chunk is committed by itself.
    """
    done = Rotated()
    while found := payload_keys.not_wrapped_by_first(limit=_KEYS):
        done.keys += payload_keys.rewrap(found)
        told(done)
    return done


def seal_readable(day: date, told: Callable[[Rotated], None]) -> Rotated:
    """Seal readable payloads, edits, reports, filters and texts of targets; a second call continues where it ended."""
    done = Rotated()

    def all_of(seal: Callable[[int, date], Sealed], count: Callable[[int], None]) -> None:
        above = 0
        while (chunk := seal(above, day)).last:
            count(chunk.n)
            above = chunk.last if chunk.n else above
            told(done)

    def payloads(n: int) -> None:
        done.payloads += n

    def edits(n: int) -> None:
        done.edits += n

    def texts(n: int) -> None:
        done.texts += n

    all_of(resealing.seal_payloads, payloads)
    all_of(resealing.seal_edits, edits)
    all_of(resealing.seal_details, texts)
    done.texts += resealing.seal_texts()
    return done
