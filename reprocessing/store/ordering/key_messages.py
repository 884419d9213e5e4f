"""Read the letters with the same ordering key that come before and after a letter, in all states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models import Letter
from reprocessing.store import rows

#: Letters before a letter, and after it, that a page shows.
SHOWN: Final = 10
#: Finished letters after a letter that are read to count the delivered ones.
COUNTED_AT_MOST: Final = 1_000

# Each part has the condition and the order of an index. No index has a key's letters of all states, because a letter
# changes often, and each change would write that index.
_ON_LANE: Final[LiteralString] = """
lane_id = coalesce(%(lane)b::bigint, (SELECT n.id FROM redrive_lane n
            WHERE n.dlq_id = %(dlq)b AND n.source_id = %(source)b AND n.key_hash = %(hash)b))"""
_OF_KEY: Final[LiteralString] = "source_id = %(source)b AND key_hash = %(hash)b AND NOT single"
_OPEN: Final[LiteralString] = f"{_ON_LANE} AND state IN ('waiting', 'sending', 'awaiting') AND NOT frees_lane"
_CAPTURED: Final[LiteralString] = f"{_OF_KEY} AND state = 'captured' AND planned"
_ENDED: Final[tuple[LiteralString, ...]] = (
    f"{_ON_LANE} AND NOT single AND (finished_at IS NOT NULL OR frees_lane)",
    f"{_OF_KEY} AND lane_id IS NULL AND finished_at IS NOT NULL",  # never enlisted, such as parked when captured
)

_COLUMNS: Final[LiteralString] = (
    "id, message_id, state, presumed, reason, sequence, attempts, attempts_before_release, spared, first_sent_at,"
    " finished_at"
)


_PART: Final[LiteralString] = """
(SELECT {columns} FROM redrive_letter WHERE {among} AND {bound}
  ORDER BY sequence {way}, message_id {way} LIMIT %(limit)b)"""


def _in_order(among: tuple[LiteralString, ...], bound: LiteralString, way: LiteralString) -> LiteralString:
    parts = [_PART.format(columns=_COLUMNS, among=one, bound=bound, way=way) for one in among]
    every = " UNION ALL ".join(parts)
    return f"SELECT * FROM ({every}) found ORDER BY sequence {way}, message_id {way} LIMIT %(limit)b"  # noqa: S608  # constants


_IS_BEFORE: Final[LiteralString] = "(sequence, message_id) < (%(sequence)b, %(message_id)b)"
_IS_AFTER: Final[LiteralString] = "(sequence, message_id) > (%(sequence)b, %(message_id)b)"
_BEFORE: Final = _in_order((_OPEN, _CAPTURED, *_ENDED), _IS_BEFORE, "DESC")
_AFTER: Final = _in_order((_OPEN, _CAPTURED, *_ENDED), _IS_AFTER, "ASC")

_LAST_DELIVERED: Final[LiteralString] = f"""
SELECT id FROM ({_in_order(_ENDED, "id <> %(letter)b AND sequence IS NOT NULL", "DESC")}) newest
 WHERE state = 'delivered' LIMIT 1
"""  # noqa: S608  # the inserted text is a constant

_DELIVERED_LATER: Final[LiteralString] = f"""
SELECT count(*) FILTER (WHERE state = 'delivered')::int AS delivered, count(*) >= %(limit)b::int AS is_cut
  FROM ({_in_order(_ENDED, _IS_AFTER, "ASC")}) later
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class LaterDelivered:
    """How many of the letters after a letter, in the order of its key, are delivered. `is_cut`: there may be more."""

    delivered: int
    is_cut: bool


@dataclass(frozen=True, slots=True)
class KeyMessage:
    """A letter with the same ordering key as another letter. `spared`: attempts not counted, as the target was down."""

    id: int
    message_id: str
    state: str
    presumed: bool
    reason: str
    sequence: str
    attempts: int
    attempts_before_release: int
    spared: int
    first_sent_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeyMessages:
    """Up to 10 letters before a letter, and up to 10 after it, in the order of its key. `more_*`: there are more."""

    before: tuple[KeyMessage, ...]
    after: tuple[KeyMessage, ...]
    more_before: bool
    more_after: bool


def messages_around(letter: Letter) -> KeyMessages | None:
    """Return the letters before and after a letter, of the same DLQ, source queue and ordering key.

    None: the letter has no ordering key, or no place in a lane yet.
    """
    if letter.single or letter.key_hash is None or letter.source_id is None or letter.sequence is None:
        return None
    asked = _asked(letter) | {"sequence": letter.sequence, "message_id": letter.message_id, "limit": SHOWN + 1}
    before, after = rows.fetch(KeyMessage, _BEFORE, asked), rows.fetch(KeyMessage, _AFTER, asked)
    return KeyMessages(
        tuple(before[SHOWN - 1 :: -1]), tuple(after[:SHOWN]), len(before) > SHOWN, len(after) > SHOWN
    )  # fmt: skip


def last_delivered(letter: Letter) -> int | None:
    """Return the id of the last delivered letter with the same ordering key as this letter, in the key's order.

    This letter itself is left out. None: no delivered letter is among the last 1,000 finished letters of the key.
    """
    if letter.single or letter.key_hash is None or letter.source_id is None:
        return None
    found = rows.column(int, _LAST_DELIVERED, _asked(letter) | {"letter": letter.pk, "limit": COUNTED_AT_MOST})
    return found[0] if found else None


def delivered_later(letter: Letter) -> LaterDelivered:
    """Count the delivered letters that come after a letter in the order of its ordering key.

    Only the next 1,001 finished letters are read. A letter without an ordering key has no later letters.
    """
    if letter.single or letter.key_hash is None or letter.source_id is None or letter.sequence is None:
        return LaterDelivered(0, is_cut=False)
    asked = _asked(letter) | {
        "sequence": letter.sequence, "message_id": letter.message_id, "limit": COUNTED_AT_MOST + 1,
    }  # fmt: skip
    return rows.fetch(LaterDelivered, _DELIVERED_LATER, asked)[0]


def _asked(letter: Letter) -> dict[str, object]:
    return {
        "dlq": letter.dlq_id, "source": letter.source_id, "hash": bytes(letter.key_hash or b""), "lane": letter.lane_id,
    }  # fmt: skip
