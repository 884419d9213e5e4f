"""List unfinished letters that a filter matches: captured, queued, sending, or awaiting their outcome."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store import rows
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.parking_lot.filtered_letters import LetterPage, ListedLetter, PageStart
from reprocessing.store.search import filter_conditions

_LIST: Final[LiteralString] = """
SELECT l.id, l.public_id, l.message_id, l.dlq_id, d.name AS dlq, l.state, l.reason, l.ordering_key AS key,
       g.id AS group_id, coalesce(nullif(g.name, ''), g.title) AS cause, l.first_sent_at, l.expires_at,
       l.finished_at, l.attempts, l.attempts_before_release, l.spared,
       d.max_attempts, l.assigned_to, l.revision_id
  FROM (SELECT * FROM redrive_letter l WHERE {where}
         ORDER BY l.first_sent_at DESC, l.id DESC LIMIT %(limit)b) l
  JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_failure_group m ON m.id = l.group_id
  LEFT JOIN redrive_failure_group g ON g.id = coalesce(m.merged_into_id, m.id)
 ORDER BY l.first_sent_at DESC, l.id DESC
"""


def open_page(criteria: MessageFilter, *, below: PageStart | None, limit: int) -> LetterPage:
    """Return a page of up to `limit` unfinished letters that a filter matches, the last sent first.

    `below`: when the last letter of the previous page was first sent, and its id; None: the first page. Raises
    InvalidFilter if the query takes longer than 5 seconds.
    """
    place = " AND (l.first_sent_at, l.id) < (%(below_at)b, %(below_id)b::bigint)" if below else ""
    asked = filter_conditions.sql_parameters(criteria) | {
        "limit": limit, "below_at": below and below[0], "below_id": below and below[1],
    }  # fmt: skip
    with filter_conditions.search_timeout():
        found = rows.fetch(ListedLetter, _LIST.format(where=filter_conditions.where_clause(criteria) + place), asked)
    return LetterPage(found, filtered_letters.count_letters(criteria))
