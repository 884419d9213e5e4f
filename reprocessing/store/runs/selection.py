"""Select letters for a run in one transaction: in each lane, the first captured letters without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class SelectedCount:
    """How many letters were selected.

    `behind`: how many requested letters were left out, because an earlier letter of their lane is not selected.
    """

    selected: int
    behind: int


# Only one selection of a DLQ runs at a time, so that each selection sees whole lanes.
_TURN = "SELECT pg_advisory_xact_lock(1381126738, %(dlq)b::int) IS NOT NULL AS done"

_WANTED: Final[LiteralString] = """
           (%(source)b::text IS NULL OR l.source_id IN (
                SELECT o.id FROM redrive_source o
                 WHERE o.dlq_id = %(dlq)b AND (o.arn = %(source)b::text
                       OR right(o.arn, length(%(source)b::text) + 1) = ':' || %(source)b::text)))
           AND (%(after)b::timestamptz IS NULL OR l.first_sent_at >= %(after)b::timestamptz)
           AND (%(before)b::timestamptz IS NULL OR l.first_sent_at < %(before)b::timestamptz)
           AND (%(key)b::text IS NULL OR coalesce(l.ordering_key = %(key)b::text, false))
           AND (%(ids)b::text[] IS NULL OR l.message_id = ANY(%(ids)b::text[]))
"""

_HAS_MATCH = f"""
SELECT EXISTS (SELECT FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND {_WANTED}) AS found
"""  # noqa: S608  # the inserted text is the constant above

# Finds the letters that lead their lanes: all captured letters before them are selected. A captured letter that is not
# selected would be overtaken by later letters of its lane. Letters that are queued or sent do not matter.
_LEADING: Final[LiteralString] = f"""
WITH captured AS (
    SELECT l.id, l.message_id, l.source_id, l.key_hash, l.sequence, l.first_sent_at, l.run_id,
           coalesce(l.key_hash, int8send(l.id)) AS lane,
           l.run_id IS NULL AND (%(through)b::bigint IS NULL OR l.id <= %(through)b::bigint)
           AND {_WANTED} AS wanted
      FROM redrive_letter l
     WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND l.planned
), placed AS (
    SELECT *, bool_and(wanted OR coalesce(run_id = %(run)b, false)) OVER (
                  PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads,
           min(first_sent_at) OVER (PARTITION BY source_id, lane) AS first
      FROM captured
)
"""  # noqa: S608  # the inserted text is the constant above

# Lanes are taken in the order of their oldest letter; a limit leaves out the last letters of a lane. ARRAY and CASE are
# used because, with a join, a planner with old statistics would read all letters for each selected letter.
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

# Checks again that the given letters lead their lanes, because an earlier letter may have arrived, or gone to another
# run. Letters up to the last given letter of a lane are read by index. The condition on the DLQ is left out (the source
# queue implies the DLQ), and OFFSET 0 prevents a join. Else the planner may read all captured letters of the DLQ.
_LEADING_FREE = """
WITH given AS (
    SELECT id, source_id, key_hash, single, sequence, message_id FROM redrive_letter
     WHERE id = ANY(%(letters)b::bigint[])
       AND CASE state WHEN 'captured' THEN dlq_id = %(dlq)b AND planned AND run_id IS NULL ELSE false END
), last AS (
    SELECT DISTINCT ON (source_id, key_hash) source_id, key_hash, sequence, message_id
      FROM given WHERE NOT single ORDER BY source_id, key_hash, sequence DESC, message_id DESC
), missing AS (
    SELECT n.source_id, n.key_hash, m.sequence, m.message_id
      FROM last n CROSS JOIN LATERAL (
           SELECT l.sequence, l.message_id FROM redrive_letter l
            WHERE l.source_id = n.source_id AND l.key_hash = n.key_hash
              AND l.state = 'captured' AND l.planned AND NOT l.single
              AND (l.sequence, l.message_id) <= (n.sequence, n.message_id)
              AND l.run_id IS DISTINCT FROM %(run)b AND l.id NOT IN (SELECT id FROM given)
            ORDER BY l.sequence, l.message_id LIMIT 1 OFFSET 0) m
)
SELECT l.id FROM redrive_letter l
 WHERE l.id = ANY (ARRAY (
           SELECT g.id FROM given g
             LEFT JOIN missing m ON NOT g.single AND m.source_id = g.source_id AND m.key_hash = g.key_hash
                                AND (m.sequence, m.message_id) < (g.sequence, g.message_id)
            WHERE m.message_id IS NULL))
   AND CASE l.state WHEN 'captured' THEN l.run_id IS NULL ELSE false END
   FOR NO KEY UPDATE
"""


def select_letters(dlq: int, run: int, wish: Selection, *, through: int | None = None) -> SelectedCount:
    """Select the letters that a run requests and that no other run has, in the caller's transaction; return how many.

    A letter is selected only together with all captured letters before it in its lane, so that the run does not change
    the order. Letters without a place in a lane are not selected. `through`: only letters with ids up to this id; None:
    all letters.
    """
    lock_selection(dlq)
    return rows.fetch(SelectedCount, _SELECT, {**_values(dlq, run, wish), "through": through})[0]


def has_match(dlq: int, wish: Selection) -> bool:
    """Return whether any captured letter of the DLQ fulfils the selection's conditions, even if a plan selected it."""
    return rows.value(bool, _HAS_MATCH, _values(dlq, 0, wish))


def lock_selection(dlq: int) -> None:
    """Prevent other transactions from selecting letters of this DLQ until the caller's transaction ends."""
    rows.execute(_TURN, {"dlq": dlq})


def next_letters(dlq: int, run: int, *, through: int, most: int) -> list[int]:
    """Return the ids of the next `most` letters that a run could select, in the order of selection.

    `through`: only letters with ids up to this id.
    """
    values = {**_values(dlq, run, ALL_LETTERS), "through": through, "most": most}
    return rows.column(int, _NEXT, values)


def lock_free_letters(dlq: int, run: int, letters: Sequence[int]) -> list[int]:
    """Lock the letters that may join the run `run`; return their ids.

    A letter may join if it is captured and has no run, and if each captured letter before it in its lane is also given,
    or is in the run. Until the caller's transaction ends, no other run can select the locked letters.
    """
    lock_selection(dlq)
    return rows.column(int, _LEADING_FREE, {"dlq": dlq, "run": run, "letters": list(letters)})


def letters_behind(dlq: int, run: int, wish: Selection, *, most: int) -> list[str]:
    """Return up to `most` message ids of requested letters that cannot be selected, because they would overtake others.

    An earlier letter of their ordering key was not requested, so they would be sent before this letter.
    """
    return rows.column(str, _BEHIND, {**_values(dlq, run, wish), "most": most})


def _values(dlq: int, run: int, wish: Selection) -> dict[str, Any]:
    return {
        "dlq": dlq, "run": run, "through": None, "limit": wish.limit, "source": wish.source, "after": wish.sent_after,
        "before": wish.sent_before, "key": wish.key, "ids": list(wish.message_ids) or None,
    }  # fmt: skip
