"""The mark of a selection is that of exactly these messages in their states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from reprocessing.domain.parking_lot.selection_mark import selection_mark


@dataclass(frozen=True)
class Message:
    id: int
    since: datetime


ONE = Message(1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
TWO = Message(2, datetime(1970, 1, 1, 0, 0, 2, 5, tzinfo=UTC))


def test_a_mark_is_the_newest_time_in_microseconds_and_a_digest() -> None:
    assert selection_mark([]) == "0-e3b0c44298fc1c14"
    assert selection_mark([ONE, TWO]) == selection_mark([TWO, ONE]) == "2000005-960c1b75767a4e63"


def test_another_selection_or_another_state_has_another_mark() -> None:
    later = replace(ONE, since=ONE.since + timedelta(microseconds=1))
    some: tuple[list[Message], ...] = ([], [ONE], [TWO], [ONE, TWO], [later], [later, TWO], [Message(3, TWO.since)])
    assert len({selection_mark(chosen) for chosen in some}) == len(some)
