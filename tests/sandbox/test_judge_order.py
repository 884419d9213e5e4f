"""The judge finds messages out of order, and two of a lane at the same time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive_service.sandbox.judge import Experiment, Offence
from tests.sandbox.call_logs import ACCEPTED, SHOP, Story, dead_lane, offences


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.mark.parametrize("experiment", [SHOP, ACCEPTED])
def test_a_letter_that_passes_an_earlier_one_is_out_of_order(story: Story, experiment: Experiment) -> None:
    dead_lane(story)
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    assert offences(story, experiment) == [(Offence.REORDERED, "e10")]


@pytest.mark.parametrize("experiment", [SHOP, ACCEPTED])
def test_numbers_order_a_lane_and_other_lanes_do_not_matter(story: Story, experiment: Experiment) -> None:
    dead_lane(story)
    story.tell("redrive r2 e2 anna 2 letter-2:1; consume r2")
    story.redrive_batch(("r10", "e10 anna 10", "letter-10:1"), ("r1", "e1 berta 1", "letter-1:1"))
    assert offences(story, experiment) == []


def test_where_outcomes_are_awaited_the_next_letter_waits_for_this_ones(story: Story) -> None:
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    assert offences(story, ACCEPTED) == []
    assert offences(story) == [(Offence.REORDERED, "e10"), (Offence.OVERLAP, "e10")]


@pytest.mark.parametrize("experiment", [SHOP, ACCEPTED])
def test_a_letter_that_has_come_back_goes_before_the_next(story: Story, experiment: Experiment) -> None:
    dead_lane(story)
    story.tell("redrive r2 e2 anna 2 letter-2:1; come_back r2; redrive r10 e10 anna 10 letter-10:1")
    assert offences(story, experiment) == [(Offence.REORDERED, "e10")]


def test_a_letter_that_comes_back_after_the_next_went_may_be_sent_again(story: Story) -> None:
    dead_lane(story)
    story.tell(
        "redrive r2 e2 anna 2 letter-2:1; redrive r10 e10 anna 10 letter-10:1; consume r10; come_back r2",
        "redrive r2b e2 anna 2 letter-2:2; consume r2b",
    )
    assert offences(story, ACCEPTED) == []
    assert offences(story, replace(ACCEPTED, fifo=True)) == []


def test_a_letter_that_comes_back_late_goes_before_what_has_not_gone_yet(story: Story) -> None:
    for number in (1, 2, 3):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.come_back("r1")
    story.redrive("r3", "e3 anna 3", "letter-3:1")
    assert offences(story, ACCEPTED) == [(Offence.REORDERED, "e3")]


def test_a_parked_letter_steps_aside_once_all_that_was_sent_of_it_is_back(story: Story) -> None:
    dead_lane(story)
    story.tell("redrive r2 e2 anna 2 letter-2:1; come_back r2; settle m2 r2; redrive r10 e10 anna 10 letter-10:1")
    assert offences(story, parked={"m2"}) == []


def test_of_an_events_two_letters_one_may_be_delivered_and_the_other_step_aside(story: Story) -> None:
    dead_lane(story)
    story.tell(
        "die m3 e2 anna 2; redrive r2 e2 anna 2 letter-2:1; consume r2; redrive r3 e2 anna 2 letter-3:1",
        "come_back r3; settle m2 m3 r3; redrive r10 e10 anna 10 letter-10:1",
    )
    assert (Offence.REORDERED, "e10") in offences(story)  # nobody says that the other stepped aside
    assert (Offence.REORDERED, "e10") not in offences(story, parked={"m3"})


def test_a_letter_that_is_parked_only_later_did_not_step_aside(story: Story) -> None:
    dead_lane(story)
    story.tell("redrive r2 e2 anna 2 letter-2:1; redrive r10 e10 anna 10 letter-10:1; come_back r2; settle m2 r2")
    assert offences(story, parked={"m2"}) == [(Offence.REORDERED, "e10"), (Offence.OVERLAP, "e10")]
    assert offences(story, ACCEPTED, parked={"m2"}) == []  # then nobody waits for what the target took


def test_a_late_letter_sent_after_a_later_one_is_out_of_order_unless_it_was_released(story: Story) -> None:
    story.tell("die m10 e10 anna 10; redrive r10 e10 anna 10 letter-10:1; consume r10; die m2 e2 anna 2")
    assert offences(story) == []
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    assert offences(story) == [(Offence.REORDERED, "e2")]
    assert offences(story, released={"m2"}) == []


def test_a_late_letter_may_go_where_all_that_went_of_later_ones_came_back(story: Story) -> None:
    for number in (10, 9):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.tell(
        "redrive r9 e9 anna 9 letter-9:1; come_back r9; settle m9 r9; redrive r10 e10 anna 10 letter-10:1",
        "come_back r10; settle m10 r10; die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1",
    )
    assert offences(story, parked={"m9", "m10"}) == []


def test_a_late_letter_is_out_of_order_while_any_later_one_is_out(story: Story) -> None:
    for number in (9, 10):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.tell(
        "redrive r9 e9 anna 9 letter-9:1; redrive r10 e10 anna 10 letter-10:1; come_back r10; settle m10 r10",
        "die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1",
    )
    assert offences(story, ACCEPTED, parked={"m10"}) == [(Offence.REORDERED, "e2")]


def test_a_released_letter_did_not_stop_the_others_before(story: Story) -> None:
    dead_lane(story)
    story.tell("redrive r10 e10 anna 10 letter-10:1; consume r10; redrive r2 e2 anna 2 letter-2:1; consume r2")
    assert offences(story, released={"m2"}) == []


def test_letters_with_one_number_have_no_order(story: Story) -> None:
    story.tell(
        "die m1 e1 anna 1; die m2 e2 anna 1; redrive r2 e2 anna 1 letter-2:1; consume r2",
        "redrive r1 e1 anna 1 letter-1:1",
    )
    assert offences(story) == []


def test_a_fifo_queues_groups_and_sequence_numbers_make_lanes(story: Story) -> None:
    fifo = replace(ACCEPTED, ordering=None, sequence=None, fifo=True)
    story.die("m1", "e1 - -", group="anna", sequence_number="900")
    story.die("m2", "e2 - -", group="anna", sequence_number="1000")
    story.redrive("r2", "e2 - -", "letter-2:1", group="anna")
    assert offences(story, fifo) == [(Offence.REORDERED, "e2")]
    story.calls.pop()
    story.redrive("r1", "e1 - -", "letter-1:1", group="anna")
    story.redrive("r2", "e2 - -", "letter-2:1", group="anna")
    assert offences(story, fifo) == []


def test_the_consumer_must_see_the_order_too(story: Story) -> None:
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    story.tell("consume r10; consume r2")
    assert offences(story, ACCEPTED) == []
    assert offences(story, replace(ACCEPTED, fifo=True)) == [(Offence.REORDERED, "e2")]


def test_a_failure_is_no_turn_and_a_second_success_no_step_back(story: Story) -> None:
    fifo = replace(ACCEPTED, fifo=True)
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    story.tell("consume r2 failed; consume r10; consume r2")
    assert offences(story, fifo) == [(Offence.REORDERED, "e2")]
    story.consumed[0]["outcome"] = "ok"
    assert offences(story, fifo) == []


def test_two_letters_of_a_lane_on_their_way_at_once_overlap_whatever_their_order(story: Story) -> None:
    story.tell("die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1; die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1")
    assert offences(story, released={"m1"}) == [(Offence.OVERLAP, "e1")]


def test_letters_of_two_lanes_may_be_on_their_way_at_once(story: Story) -> None:
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r1", "e1 berta 1", "letter-1:1"))
    assert offences(story) == []


@pytest.mark.parametrize(("lasts", "found"), [(0.5, []), (1.5, [(Offence.OVERLAP, "e10")])])
def test_the_consumer_must_not_have_two_of_a_lane_at_once(
    story: Story, lasts: float, found: list[tuple[Offence, str]]
) -> None:
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    story.consume("r2", lasts=lasts)
    story.consume("r10")
    assert offences(story, replace(ACCEPTED, fifo=True)) == found


def test_one_message_handed_out_twice_at_once_is_no_overlap(story: Story) -> None:
    dead_lane(story)
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.consume("r2", lasts=3)
    story.consume("r2")
    assert offences(story) == []


def test_all_that_is_begun_during_a_long_processing_overlaps_it(story: Story) -> None:
    for number in (1, 2, 3):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.redrive_batch(*((f"r{number}", f"e{number} anna {number}", f"letter-{number}:1") for number in (1, 2, 3)))
    story.consume("r1", lasts=9)
    story.tell("consume r2; consume r3")
    assert offences(story, replace(ACCEPTED, fifo=True)) == [(Offence.OVERLAP, "e2"), (Offence.OVERLAP, "e3")]
