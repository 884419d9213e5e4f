"""Change the wrapping key, which encrypts the data keys of payloads. Encrypt payloads that are stored unencrypted.

If the process is killed, a second call continues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from reprocessing.pipeline.search import reindex
from reprocessing.store.payloads import installation_texts, payload_keys, resealing
from reprocessing.store.payloads.resealing import Sealed

#: Most data keys that are encrypted again in one batch.
_KEYS = 100
#: Seconds after which the progress is reported while search values are replaced.
_REINDEX_FOR = 5.0


@dataclass(slots=True)
class Rotated:
    """How many data keys were encrypted with the new wrapping key, and how many payloads, edits and texts."""

    keys: int = 0
    payloads: int = 0
    edits: int = 0
    texts: int = 0


def rewrap_keys(on_progress: Callable[[Rotated], None]) -> Rotated:
    """Encrypt each data key with the first wrapping key of the settings; return the counts.

    The data keys themselves stay the same. So payloads need not be encrypted again, and messages can be captured and
    sent meanwhile. Each batch is committed by itself. `on_progress` is called after each batch, with the counts so far.
    """
    done = Rotated()
    while found := payload_keys.not_wrapped_by_first(limit=_KEYS):
        done.keys += payload_keys.rewrap(found)
        on_progress(done)
    return done


def seal_readable(day: date, on_progress: Callable[[Rotated], None]) -> Rotated:
    """Encrypt what is stored unencrypted: payloads, edits, reports, filters, error texts of targets; return the counts.

    `day`: the day whose data keys are used. `on_progress`: called after each batch, with the counts so far. If the
    process is killed, a second call continues.
    """
    done = Rotated()

    def all_of(seal: Callable[[int, date], Sealed], count: Callable[[int], None]) -> None:
        above = 0
        while (chunk := seal(above, day)).last:
            count(chunk.n)
            above = chunk.last if chunk.n else above
            on_progress(done)

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
        on_progress(done)
    return done
