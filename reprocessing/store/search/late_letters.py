"""Count the letters that a bulk action left out because they finished after it was requested."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store import rows
from reprocessing.store.search import filter_conditions

#: Letters that finished after the bulk action was requested are read up to this number.
MAX_LATE_COUNT: Final = 1_000

# Each letter's audit log entries are read by an index: with EXISTS, PostgreSQL could read the entries of all letters.
_LATER: Final[LiteralString] = """
SELECT count(*) FILTER (WHERE (SELECT true FROM redrive_audit_entry r
                                WHERE r.letter_id = l.id AND r.at >= %(asked_at)b
                                  AND r.operation_id = %(action)b::bigint LIMIT 1) IS NULL) AS n,
       count(*) > %(most)b::bigint AS is_lower_bound
  FROM (SELECT l.id FROM redrive_letter l WHERE l.finished_at > %(asked_at)b AND {where}
         LIMIT %(most)b::bigint + 1) l
"""


@dataclass(frozen=True, slots=True)
class LateLetters:
    """How many letters a bulk action left out (`n`). `is_lower_bound`: there may be more, because not all were read."""

    n: int
    is_lower_bound: bool


def count_late(action: int, criteria: MessageFilter, *, asked_at: datetime) -> LateLetters:
    """Return how many letters match the filter of a bulk action, but finished after it was requested (`asked_at`).

    `action`: id of the bulk action. Letters that it changed are not counted. They may have finished later, too: for
    example, a letter that was released and parked again.
    """
    asked = filter_conditions.sql_parameters(criteria) | {
        "action": action,
        "asked_at": asked_at,
        "most": MAX_LATE_COUNT,
    }
    (found,) = rows.fetch(LateLetters, _LATER.format(where=filter_conditions.where_clause(criteria)), asked)
    return found
