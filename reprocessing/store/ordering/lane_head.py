"""SQL that reads the first unfinished letters of a lane, and is fast even if PostgreSQL's statistics are wrong."""

from __future__ import annotations

from typing import LiteralString


def first_letters(letter: LiteralString, lane: LiteralString, *, most: LiteralString = "1") -> LiteralString:
    """Return a subquery that reads the first unfinished letters of a lane, in their order. Put it after FROM.

        f"SELECT l.id FROM {first_letters('l', 'n.id')} WHERE l.due_at IS NULL"

    Both ends of the lane are compared as a row, because PostgreSQL then reads the letters in order from the index
    `letters_by_lane_and_sequence`, which has unfinished letters only. With a condition on `lane_id` alone and old
    statistics, PostgreSQL expects few letters in each lane. It may then read and sort all letters of the lane through
    the index of the foreign key. Without the second comparison, it would read on in other lanes if the lane has no
    unfinished letter.

    Args:
        letter: the alias of the letters in the SELECT.
        lane: SQL for the id of the lane.
        most: SQL for the largest number of letters.
    """
    return (
        f"(SELECT * FROM redrive_letter WHERE (lane_id, sequence, message_id) >= ({lane}, '', '')"  # noqa: S608  # constants
        f" AND (lane_id, sequence, message_id) < ({lane} + 1, '', '')"
        " AND state IN ('waiting', 'sending', 'awaiting') AND NOT frees_lane"
        f" ORDER BY lane_id, sequence, message_id LIMIT {most}) {letter}"
    )
