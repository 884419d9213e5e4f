"""A DLQ grows when more arrives than leaves during the whole time, and by enough."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reprocessing.domain.notifications.dlq_growth import DlqNote, Growth, GrowthUnknown, NotGrowing, growth

HOUR = 3_600.0


def noted(backlogs: Sequence[int], *, drained: int = 0) -> list[DlqNote]:
    """Return notes of the last hour, five minutes apart; `drained` messages left evenly."""
    last = len(backlogs) - 1
    return [
        DlqNote(300.0 * (last - n), uncaptured=0, captured=backlog + drained * n // max(last, 1), unfinished=backlog)
        for n, backlog in enumerate(backlogs)
    ]


def test_a_dlq_that_gained_for_an_hour_grows_by_what_arrived_and_left() -> None:
    assert growth(noted(range(100, 230, 10), drained=50), within=HOUR, is_open=False) == Growth(170, 50, HOUR, 220)


@pytest.mark.parametrize(
    "backlogs",
    [
        [100] * 13,
        [100, *[101] * 12],  # too little
        [1_000, *range(1_000, 1_096, 8)],  # less than a tenth
        [100, 300, 120, 310, 140, 320, 160, 330, 180, 340, 200, 350, 220],  # it fills and is emptied
        list(range(220, 90, -10)),
    ],
)
def test_a_dlq_that_swings_or_gains_little_or_drains_does_not_grow(backlogs: list[int]) -> None:
    assert growth(noted(backlogs), within=HOUR, is_open=False) == NotGrowing()


@pytest.mark.parametrize("is_open", [False, True])
def test_notes_of_half_an_hour_do_not_tell_about_an_hour(is_open: bool) -> None:
    assert growth(noted(range(0, 700, 100)), within=HOUR, is_open=is_open) == GrowthUnknown()
    assert growth([], within=HOUR, is_open=is_open) == GrowthUnknown()


def test_an_open_growth_ends_when_the_backlog_is_no_larger_than_half_an_hour_ago() -> None:
    flat = [*range(100, 170, 10), *[170] * 6]
    assert isinstance(growth(noted(flat), within=HOUR, is_open=True), Growth)
    assert growth(noted([*flat[6:], *[170] * 6]), within=HOUR, is_open=True) == NotGrowing()


def test_whether_one_still_grows_is_not_known_without_a_note_of_halfway() -> None:
    notes = noted(range(100, 230, 10))
    assert growth([*notes[:6], notes[-1]], within=HOUR, is_open=True) == GrowthUnknown()


def test_messages_only_in_sqs_count_too() -> None:
    notes = [DlqNote(HOUR - 300.0 * n, uncaptured=50 * n, captured=0, unfinished=0) for n in range(13)]
    assert growth(notes, within=HOUR, is_open=False) == Growth(600, 0, HOUR, 600)
