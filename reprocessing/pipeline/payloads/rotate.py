"""Wrap data keys with a new wrapping key, and encrypt payloads that were stored readable.

If the process is killed, a second call continues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from reprocessing.pipeline.search import reindex
from reprocessing.store.payloads import installation_texts, payload_keys, resealing
from reprocessing.store.payloads.resealing import Sealed

#: Most data keys that one statement wraps.
_KEYS = 100
#: Seconds after which the progress is told while search values are replaced.
_REINDEX_FOR = 5.0


@dataclass(slots=True)
class Rotated:
    """How many data keys were wrapped again, and how many payloads, edits and texts were encrypted."""

    keys: int = 0
    payloads: int = 0
    edits: int = 0
    texts: int = 0


def rewrap_keys(told: Callable[[Rotated], None]) -> Rotated:
    """Wrap each data key with the first wrapping key. Return the counts. Messages are captured and sent meanwhile.

    The data keys stay the same, so payloads need not be encrypted again. Each batch is committed by itself. `told`
    gets the counts after each batch.
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
    done.texts += installation_texts.seal_texts()
    while not reindex.reindex_dlqs(seconds=_REINDEX_FOR):  # replaces readable search values by keyed hashes
        told(done)
    return done
