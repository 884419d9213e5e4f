"""Select letters for a run in one transaction: of each lane the first letters, without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class SelectedCount:
    """How many letters were selected. `behind`: how many were not, because earlier letters of their lanes are not."""

    selected: int
    behind: int


# Only one selection of a DLQ runs at a time, so that each selection sees whole lanes.
_TURN = "SELECT pg_advisory_xact_lock(1381126738, %(dlq)b::int) IS NOT NULL AS done"

# Earlier letters that are queued or sent do not matter. An earlier letter that is captured, and not selected, would be
# overtaken.
_LEADING: Final[LiteralString] = """
WITH captured AS (
    SELECT l.id, l.message_id, l.source_id, l.key_hash, l.sequence, l.first_sent_at, l.run_id,
           coalesce(l.key_hash, int8send(l.id)) AS lane,
           l.run_id IS NULL AND (%(through)b::bigint IS NULL OR l.id <= %(through)b::bigint)
           AND (%(source)b::text IS NULL OR l.source_id IN (
                SELECT o.id FROM redrive_source o
                 WHERE o.dlq_id = %(dlq)b AND (o.arn = %(source)b::text
                       OR right(o.arn, length(%(source)b::text) + 1) = ':' || %(source)b::text)))
           AND (%(after)b::timestamptz IS NULL OR l.first_sent_at >= %(after)b::timestamptz)
           AND (%(before)b::timestamptz IS NULL OR l.first_sent_at < %(before)b::timestamptz)
           AND (%(key)b::text IS NULL OR coalesce(l.ordering_key = %(key)b::text, false))
           AND (%(ids)b::text[] IS NULL OR l.message_id = ANY(%(ids)b::text[])) AS wanted
      FROM redrive_letter l
     WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND l.planned
), placed AS (
    SELECT *, bool_and(wanted OR coalesce(run_id = %(run)b, false)) OVER (
                  PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads,
           min(first_sent_at) OVER (PARTITION BY source_id, lane) AS first
      FROM captured
)
"""

# Lanes are taken in the order of their oldest letter; a limit leaves out the last letters of a lane. ARRAY and CASE:
# with a join, a planner that takes the table for empty would read all letters for each selected letter.
_SELECT = f"""
{_LEADING}, chosen AS (
    SELECT id, row_number() OVER (ORDER BY first, key_hash, source_id, sequence, message_id) AS place
      FROM placed WHERE wanted AND leads
), taken AS (
    UPDATE redrive_letter l SET run_id = %(run)b
     WHERE l.id = ANY (ARRAY (
                SELECT id FROM chosen WHERE %(limit)b::bigint IS NULL OR place <= %(limit)b::bigint))
       AND CASE l.state WHEN 'captured' THEN l.run_id IS NULL ELSE false END
    RETURNING l.id
)
SELECT (SELECT count(*) FROM taken) AS selected, (SELECT count(*) FROM placed WHERE wanted AND NOT leads) AS behind
"""  # noqa: S608  # the inserted text is the constant above

_BEHIND = f"""
{_LEADING}
SELECT message_id FROM placed WHERE wanted AND NOT leads ORDER BY first, key_hash, source_id, sequence, message_id
 LIMIT %(most)b
"""  # noqa: S608  # the inserted text is the constant above

_NEXT = f"""
{_LEADING}
SELECT id FROM placed WHERE wanted AND leads ORDER BY first, key_hash, source_id, sequence, message_id LIMIT %(most)b
"""  # noqa: S608  # the inserted text is the constant above

# Checks only the lanes of these letters again: an earlier letter may have arrived, or gone to another run. CASE makes
# the sets hashed: a planner that takes the table for empty would join them as a product.
_CLAIM = """
WITH placed AS (
    SELECT l.id, l.source_id, coalesce(l.key_hash, int8send(l.id)) AS lane, l.sequence, l.message_id, l.run_id,
           CASE WHEN l.id IN (SELECT unnest(%(letters)b::bigint[])) THEN l.run_id IS NULL ELSE false END AS wanted
      FROM redrive_letter l
     WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND l.planned
       AND CASE WHEN l.id IN (SELECT unnest(%(letters)b::bigint[])) THEN true
                ELSE l.key_hash IN (SELECT k.key_hash FROM redrive_letter k
                                     WHERE k.id = ANY(%(letters)b::bigint[]) AND k.key_hash IS NOT NULL) END
), told AS (
    SELECT id, wanted, bool_and(wanted OR coalesce(run_id = %(run)b, false)) OVER (
               PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads
      FROM placed
)
UPDATE redrive_letter l SET run_id = %(run)b
 WHERE l.id = ANY (ARRAY (SELECT id FROM told WHERE wanted AND leads))
   AND CASE l.state WHEN 'captured' THEN l.run_id IS NULL ELSE false END
RETURNING l.id
"""


def select_letters(dlq: int, run: int, wish: Selection, *, through: int | None = None) -> SelectedCount:
    """Select, in the caller's transaction, the letters that a run asks for and that no other run has.

    A letter is selected only with all captured letters before it in its lane, and only if it has a place in a lane.
    `through`: only letters up to this id.
    """
    lock_selection(dlq)
    return rows.fetch(SelectedCount, _SELECT, {**_values(dlq, run, wish), "through": through})[0]


def lock_selection(dlq: int) -> None:
    """Let no other transaction select letters of this DLQ until the caller's transaction ends."""
    rows.execute(_TURN, {"dlq": dlq})


def next_letters(dlq: int, run: int, *, through: int, most: int) -> list[int]:
    """Return the first `most` letters that a run could get, in order, up to the letter id `through`."""
    values = {**_values(dlq, run, ALL_LETTERS), "through": through, "most": most}
    return rows.column(int, _NEXT, values)


def claim_letters(dlq: int, run: int, letters: Sequence[int]) -> list[int]:
    """Give a run those of these letters that only letters of the run precede in their lanes; return these letters.

    Call it in a transaction. Letters that have a run already are left out.
    """
    lock_selection(dlq)
    return rows.column(int, _CLAIM, {"dlq": dlq, "run": run, "letters": list(letters)})


def letters_behind(dlq: int, run: int, wish: Selection, *, most: int) -> list[str]:
    """Return the message ids of requested letters that come after letters of their lanes that were not requested."""
    return rows.column(str, _BEHIND, {**_values(dlq, run, wish), "most": most})


def _values(dlq: int, run: int, wish: Selection) -> dict[str, Any]:
    return {
        "dlq": dlq, "run": run, "through": None, "limit": wish.limit, "source": wish.source, "after": wish.died_after,
        "before": wish.died_before, "key": wish.key, "ids": list(wish.message_ids) or None,
    }  # fmt: skip
