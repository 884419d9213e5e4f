"""SQL that reads the first unfinished letters of a lane, whatever the planner's statistics say."""

from __future__ import annotations

from typing import LiteralString


def first_letters(letter: LiteralString, lane: LiteralString, *, most: LiteralString = "1") -> LiteralString:
    """Return SQL that reads the first unfinished letters of a lane, in their order: a subquery and a WHERE.

    Put it after FROM. The text ends with a condition, so add other conditions with AND, not WHERE:

        f"SELECT l.id FROM {first_letters('l', 'n.id')} AND l.due_at IS NULL"

    The subquery starts at the lane's place in the index `letters_by_lane_and_sequence`, which has unfinished letters
    only. If the lane has none, the subquery returns letters of the next lane in the index. The last condition
    leaves these letters out, so that no row is returned.

    The columns are compared as a row, because PostgreSQL then reads rows in order, and it can do so through this index
    alone. With a condition on `lane_id` alone and old statistics, it expects few letters in each lane. It may then read
    and sort all letters of the lane through the index of the foreign key.

    Args:
        letter: the alias of the letters in the SELECT.
        lane: SQL for the id of the lane.
        most: SQL for the largest number of letters.
    """
    return (
        f"(SELECT * FROM redrive_letter WHERE (lane_id, sequence, message_id) >= ({lane}, '', '')"  # noqa: S608  # constants
        " AND state IN ('waiting', 'sending', 'awaiting') AND NOT frees_lane"
        f" ORDER BY lane_id, sequence, message_id LIMIT {most}) {letter} WHERE {letter}.lane_id = {lane}"
    )
