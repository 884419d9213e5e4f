"""The waits of the broker."""

from __future__ import annotations

import pytest

from redrive_service.broker.timeouts import Timeouts, TimeoutsAreInvalid


@pytest.mark.parametrize("options", [{"conect": 1}, {"connect": 0}, {"receive_margin": -1}])
def test_a_wait_that_cannot_be_kept_is_refused_by_name_and_others_change_no_other(options: dict[str, float]) -> None:
    assert Timeouts.of({"connect": 1.5}) == Timeouts(connect=1.5)
    with pytest.raises(TimeoutsAreInvalid, match=next(iter(options))):
        Timeouts.of(options)


def test_pauses_double_from_the_first_to_the_longest_and_stay_there() -> None:
    timeouts = Timeouts(first_pause=0.5, longest_pause=10)
    pauses = [timeouts.pause(failures_in_a_row=row) for row in (1, 2, 3, 4, 5, 6, 12, 10_000)]
    assert pauses == [0.5, 1, 2, 4, 8, 10, 10, 10]
