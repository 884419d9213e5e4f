"""SQL that reads the first unfinished letters of a lane, whatever the planner's statistics say."""

from __future__ import annotations

from typing import LiteralString


def first_letters(letter: LiteralString, lane: LiteralString, *, most: LiteralString = "1") -> LiteralString:
    """Return the end of a SELECT, after FROM, that reads the first unfinished letters of a lane, in their order.

    While statistics are old, PostgreSQL expects few letters in each lane. With a condition on `lane_id` alone, it may
    then read and sort all letters of the lane through the index of the foreign key. The columns are compared as a row,
    because it reads rows in order only through `letters_by_lane_and_sequence`, which has the unfinished letters alone.
    A lane without such letters shows as a letter of another lane, which is left out.

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
