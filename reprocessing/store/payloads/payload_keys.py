"""Read and write data keys, which encrypt payloads, and keep in memory the keys that this process has unwrapped.

A data key is stored wrapped: encrypted by a wrapping key, which may be in AWS KMS. Because KMS costs time and money, an
unwrapped key is kept in memory for a limited time. `use_ring` sets the function that returns the wrapping keys, since
this layer does not call AWS KMS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from reprocessing.domain.errors import PayloadDestroyed, PayloadKeyUnavailable
from reprocessing.domain.payloads.key_ring import NO_KEYS, KeyRing
from reprocessing.domain.payloads.sealing import DataKey, new_secret
from reprocessing.store import rows

#: What a data key is for, as a pair (DLQ, day): payloads of the DLQ on the day. (None, None): the installation's key,
#: for digests and texts. (DLQ, None): the DLQ's search key, which only computes the keyed hashes of search values.
Place = tuple[int | None, date | None]
INSTALLATION: Final[Place] = (None, None)
#: Seconds for which a process without wrapping keys remembers whether data keys are in use.
_LOOK_AGAIN: Final = 10.0


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A stored data key: encrypted (`wrapped`) by the wrapping key `wrapped_by`.

    `wrapped`: None if a person destroyed the key.
    """

    id: int
    dlq_id: int | None
    day: date | None
    wrapped: bytes | None = field(repr=False)
    wrapped_by: str

    @property
    def context(self) -> str:
        """Return the encryption context (as in AWS KMS) of the key. A key of another row has another, and fails."""
        return context_of((self.dlq_id, self.day))


_BY_ID = "SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key WHERE id = ANY(%(ids)b::bigint[])"

_OF_PLACE = """
SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key
 WHERE dlq_id IS NOT DISTINCT FROM %(dlq)b::bigint AND day IS NOT DISTINCT FROM %(day)b::date AND destroyed_at IS NULL
"""

_ADD = """
INSERT INTO redrive_payload_key (dlq_id, day, wrapped, wrapped_by, destroyed_by, destroy_reason)
VALUES (%(dlq)b::bigint, %(day)b::date, %(wrapped)b, %(wrapped_by)b, '', '') ON CONFLICT DO NOTHING
"""

_OF_SEARCHES = """
SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key
 WHERE dlq_id = ANY(%(dlqs)b::bigint[]) AND day IS NULL AND destroyed_at IS NULL
"""

_LIVES = "SELECT id FROM redrive_payload_key WHERE id = %(id)b::bigint AND destroyed_at IS NULL FOR SHARE"

_LEFT = """
SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key
 WHERE wrapped IS NOT NULL AND wrapped_by <> %(first)b ORDER BY id LIMIT %(limit)b
"""

_REWRAP = """
UPDATE redrive_payload_key k SET wrapped = s.wrapped, wrapped_by = %(first)b
  FROM unnest(%(ids)b::bigint[], %(former)b::bytea[], %(wrapped)b::bytea[]) AS s(id, former, wrapped)
 WHERE k.id = s.id AND k.wrapped = s.former
"""

_ANY = "SELECT EXISTS (SELECT FROM redrive_payload_key) AS any_key"

_NEWEST_NAME = "SELECT wrapped_by FROM redrive_payload_key WHERE wrapped IS NOT NULL ORDER BY id DESC LIMIT 1"

# The oldest and the newest data key of a wrapping key: another key may have had the same name for a while.
_ENDS = """
(SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key
  WHERE wrapped_by = %(name)b AND wrapped IS NOT NULL ORDER BY id LIMIT 1)
UNION
(SELECT id, dlq_id, day, wrapped, wrapped_by FROM redrive_payload_key
  WHERE wrapped_by = %(name)b AND wrapped IS NOT NULL ORDER BY id DESC LIMIT 1)
"""

_USED = "SELECT DISTINCT wrapped_by FROM redrive_payload_key WHERE wrapped IS NOT NULL ORDER BY wrapped_by"

_COUNT_WRAPPED = """
SELECT count(*) AS n FROM redrive_payload_key WHERE wrapped_by = ANY(%(names)b::text[]) AND wrapped IS NOT NULL
"""


class _Unwrapped:
    """The unwrapped data keys that this process keeps in memory, each for a number of seconds (see `use_ring`)."""

    def __init__(self) -> None:
        self.ring: Callable[[], tuple[KeyRing, float]] = lambda: (NO_KEYS, 0.0)
        self._lock = threading.Lock()
        self._keys: dict[int, tuple[DataKey, float]] = {}
        self._of_places: dict[Place, int] = {}
        self._fitting: set[str] = set()
        self._in_use: tuple[str, float] = "", 0.0

    def name_in_use(self) -> str:
        name, until = self._in_use
        if until <= time.monotonic():
            name = next(iter(rows.column(str, _NEWEST_NAME, {})), "")
            self._in_use = name, time.monotonic() + _LOOK_AGAIN
        return name

    def check_once(self, name: str) -> None:
        if name not in self._fitting:
            check_fits(name)
            self._fitting.add(name)

    def get(self, ids: Iterable[int]) -> dict[int, DataKey]:
        now = time.monotonic()
        with self._lock:
            for key_id in [known for known, (_, until) in self._keys.items() if until <= now]:
                del self._keys[key_id]
            return {key_id: self._keys[key_id][0] for key_id in ids if key_id in self._keys}

    def of_place(self, place: Place) -> DataKey | None:
        with self._lock:
            key_id = self._of_places.get(place)
        return None if key_id is None else self.get([key_id]).get(key_id)

    def add(self, key: DataKey, place: Place, *, current: bool) -> None:
        with self._lock:
            self._keys[key.id] = key, time.monotonic() + self.ring()[1]
            if current:
                former = [known for known in self._of_places if known[0] == place[0] and known[1] and place[1]]
                self._of_places = {known: at for known, at in self._of_places.items() if known not in former}
                self._of_places[place] = key.id

    def clear(self) -> None:
        with self._lock:
            self._keys.clear()
            self._of_places.clear()
            self._fitting.clear()
            self._in_use = "", 0.0


_unwrapped = _Unwrapped()


def context_of(place: Place) -> str:
    """Return the encryption context (as in AWS KMS) to wrap and unwrap the data key of a place (DLQ and day)."""
    dlq, day = place
    return "redrive installation" if dlq is None else f"redrive dlq {dlq} {day or 'search'}"


def use_ring(ring: Callable[[], tuple[KeyRing, float]]) -> None:
    """Set the function that returns the wrapping keys, and the seconds for which unwrapped data keys stay in memory."""
    _unwrapped.ring = ring
    _unwrapped.clear()


def forget_unwrapped() -> None:
    """Delete the unwrapped data keys from this process's memory."""
    _unwrapped.clear()


def encrypts() -> bool:
    """Return whether new payloads are sealed (encrypted), because a wrapping key is configured."""
    return bool(_unwrapped.ring()[0].keys)


def unwrapped_keys(ids: Collection[int]) -> dict[int, DataKey]:
    """Return these data keys by id. Keys that this process has not unwrapped yet are read and unwrapped.

    Raises:
        PayloadDestroyed: a person destroyed one of the keys.
        PayloadKeyUnavailable: one of the keys cannot be unwrapped.
    """
    known = _unwrapped.get(ids)
    missing = [key_id for key_id in ids if key_id not in known]
    if not missing:
        return known
    stored = {key.id: key for key in rows.fetch(StoredKey, _BY_ID, {"ids": missing})}
    # Looked for before any key is unwrapped: a key that is not available now may come back, a destroyed key does not.
    if any((key := stored.get(key_id)) is None or key.wrapped is None for key_id in missing):
        raise PayloadDestroyed("The key of this message was destroyed: nobody can read its payload any more.")
    return known | {key_id: _unwrap(stored[key_id], current=False) for key_id in missing}


def current_key(place: Place) -> DataKey | None:
    """Return the data key for new content of a place (DLQ and day); create a missing key. None: nothing is encrypted.

    Call it outside a transaction, because AWS KMS may be called.

    Raises:
        PayloadKeyUnavailable: the key cannot be unwrapped, the first wrapping key does not fit the data keys that have
            its name, or this process has no wrapping key though data keys are in use.
    """
    if not encrypts():
        _refuse_readable()
        return None
    if (known := _unwrapped.of_place(place)) is not None:
        return known
    asked = {"dlq": place[0], "day": place[1]}
    stored = rows.first(StoredKey, _OF_PLACE, asked)
    if stored is None:
        _unwrapped.check_once(_unwrapped.ring()[0].first)
        name, wrapped = _unwrapped.ring()[0].wrap(new_secret(), context_of(place))
        rows.execute(_ADD, asked | {"wrapped": wrapped, "wrapped_by": name})
        stored = rows.fetch(StoredKey, _OF_PLACE, asked)[0]  # another process may have been faster
    return _unwrap(stored, current=True)


def search_keys(dlqs: Collection[int]) -> dict[int, DataKey]:
    """Return, by DLQ id, the data keys for the values of search fields. DLQs without such a key are left out.

    Raises:
        PayloadKeyUnavailable: one of the keys cannot be unwrapped.
    """
    stored = rows.fetch(StoredKey, _OF_SEARCHES, {"dlqs": list(dlqs)}) if dlqs else []
    known = _unwrapped.get([key.id for key in stored])
    return {key.dlq_id or 0: known.get(key.id) or _unwrap(key, current=False) for key in stored}


def try_first_key() -> None:
    """Check that the first wrapping key works: wrap and unwrap a new secret. Raises PayloadKeyUnavailable."""
    ring, context = _unwrapped.ring()[0], context_of(INSTALLATION)
    ring.unwrap(*ring.wrap(new_secret(), context), context)


def check_fits(name: str) -> None:
    """Check that the wrapping key with this name unwraps its oldest and its newest data key, if it has any.

    Raises:
        PayloadKeyUnavailable: the key is missing, does not fit, or AWS KMS does not answer.
    """
    ring = _unwrapped.ring()[0]
    for key in rows.fetch(StoredKey, _ENDS, {"name": name}):
        ring.unwrap(name, key.wrapped or b"", key.context)


def is_live(key_id: int) -> bool:
    """Return whether a data key still exists. If so, nobody can destroy it until the transaction ends."""
    return rows.first(_Id, _LIVES, {"id": key_id}) is not None


def not_wrapped_by_first(*, limit: int) -> list[StoredKey]:
    """Return up to `limit` data keys that are not wrapped by the first wrapping key, which wraps new data keys."""
    return rows.fetch(StoredKey, _LEFT, {"first": _unwrapped.ring()[0].first, "limit": limit})


def rewrap(some: Collection[StoredKey]) -> int:
    """Wrap these data keys with the first wrapping key instead; return how many were changed.

    A data key that another process changed meanwhile is left out.
    """
    ring = _unwrapped.ring()[0]
    wrapped = [ring.wrap(ring.unwrap(key.wrapped_by, key.wrapped or b"", key.context), key.context)[1] for key in some]
    values = {"ids": [key.id for key in some], "former": [key.wrapped for key in some], "wrapped": wrapped}
    return rows.execute(_REWRAP, values | {"first": ring.first})


def has_keys() -> bool:
    """Return whether there is or was a data key, also a destroyed key, so that stored payloads may be encrypted."""
    return rows.value(bool, _ANY, {})


def used_wrapping_keys() -> list[str]:
    """Return the names of the wrapping keys that wrap a data key now."""
    return rows.column(str, _USED, {})


def count_wrapped_by(names: Collection[str]) -> int:
    """Return how many data keys these wrapping keys wrap now."""
    return rows.value(int, _COUNT_WRAPPED, {"names": list(names)})


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


def _refuse_readable() -> None:
    if name := _unwrapped.name_in_use():
        raise PayloadKeyUnavailable(
            f"REDRIVE_PAYLOAD_KEYS is not set for this process, but payloads are encrypted with the key {name}. So "
            "this process captures no messages, and stores no readable payload. Set REDRIVE_PAYLOAD_KEYS for it as for "
            "the other processes, and restart it."
        )


def _unwrap(stored: StoredKey, *, current: bool) -> DataKey:
    secret = _unwrapped.ring()[0].unwrap(stored.wrapped_by, stored.wrapped or b"", stored.context)
    key = DataKey(stored.id, secret)
    _unwrapped.add(key, (stored.dlq_id, stored.day), current=current)
    return key
