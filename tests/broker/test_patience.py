"""The waits of the broker."""

from __future__ import annotations

import pytest

from redrive_service.broker.patience import Patience, PatienceIsMistaken


def test_pauses_double_from_the_first_to_the_longest_and_stay_there() -> None:
    patience = Patience(first_pause=0.5, longest_pause=10)
    pauses = [patience.pause(failures_in_a_row=row) for row in (1, 2, 3, 4, 5, 6, 12, 10_000)]
    assert pauses == [0.5, 1, 2, 4, 8, 10, 10, 10]


def test_a_receive_is_given_longer_than_its_long_poll_and_taken_for_lost_later_still() -> None:
    patience = Patience()
    assert [patience.receive(long_poll=20), patience.overdue(long_poll=20)] == [30, 35]


def test_options_change_the_waits_they_name_and_no_other() -> None:
    assert Patience.of({"connect": 1.5}) == Patience(connect=1.5)


@pytest.mark.parametrize("options", [{"conect": 1}, {"connect": 0}, {"receive_margin": -1}])
def test_a_wait_that_cannot_be_kept_is_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(PatienceIsMistaken, match=next(iter(options))):
        Patience.of(options)
