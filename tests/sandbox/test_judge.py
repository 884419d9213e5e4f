"""The judge finds every kind of fault in a log that holds it, and none in the log's clean twin."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from redrive_service.sandbox.judge import (
    Books,
    Experiment,
    Judgement,
    LogIsIncomplete,
    MarkIsUnreadable,
    Offence,
    SequenceIsNoNumber,
    Shut,
    judge,
)
from tests.sandbox.call_logs import Story

SHOP = Experiment(
    origins=frozenset({"orders"}),
    dlqs=frozenset({"orders-dlq"}),
    identity="event_id",
    ordering="account",
    sequence="sequence",
)
ACCEPTED = replace(SHOP, advance="accepted")


def judged(story: Story, experiment: Experiment = SHOP, **books: Collection[object]) -> Judgement:
    frozen: dict[str, Any] = {name: frozenset(ids) for name, ids in books.items()}
    return judge(experiment, story.calls, story.consumed, Books(**frozen))


def offences(story: Story, experiment: Experiment = SHOP, **books: Collection[object]) -> list[tuple[Offence, str]]:
    return [(finding.offence, finding.event) for finding in judged(story, experiment, **books).findings]


@pytest.fixture
def story() -> Story:
    return Story()


# -- lost


def test_a_letter_that_was_sent_back_and_processed_is_delivered(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.settle("m1")
    assert judged(story).fates == {"m1": "delivered"}
    assert offences(story) == []


def test_a_letter_deleted_from_its_dlq_and_never_sent_is_lost(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.settle("m1")
    assert judged(story).fates == {"m1": "lost"}
    assert offences(story) == [(Offence.LOST, "e1")]


def test_a_letter_called_delivered_that_the_consumer_failed_is_lost(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.come_back("r1")
    story.settle("m1", "r1")
    assert offences(story) == [(Offence.LOST, "e1")]


def test_a_letter_that_still_lies_in_a_queue_is_waiting(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.delete("m1", queue="orders-dlq", took_effect=False)
    story.die("m2", "e2 berta 1")
    story.redrive("r2", "e2 berta 1", "letter-2:1")
    story.settle("m2")
    assert judged(story).fates == {"m1": "waiting", "m2": "waiting"}


def test_a_dead_letter_that_nobody_has_received_is_a_letter_too(story: Story) -> None:
    story.publish("m1", "e1 anna 1")
    story.bury("m1")
    story.publish("m2", "e2 anna 2")
    assert judged(story).fates == {"m1": "waiting"}


@pytest.mark.parametrize(
    ("book", "fate"), [("parked", "parked"), ("discarded", "discarded"), ("open", "waiting"), ("released", "lost")]
)
def test_the_services_books_account_for_what_no_queue_holds(story: Story, book: str, fate: str) -> None:
    story.die("m1", "e1 anna 1")
    story.settle("m1")
    told: dict[str, Any] = {book: frozenset({"m1"})}
    assert judge(SHOP, story.calls, story.consumed, Books(**told)).fates == {"m1": fate}


def test_a_letter_closed_as_the_duplicate_of_a_delivered_one_is_accounted_for(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.settle("m1", "m2")
    assert judged(story, duplicates={"m2"}).fates == {"m1": "delivered", "m2": "closed_as_duplicate"}
    assert offences(story) == [(Offence.LOST, "e1")]  # its twin's delivery alone does not speak for it


def test_a_letter_closed_as_the_duplicate_of_one_that_was_not_delivered_is_lost(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e1 anna 1")
    story.settle("m1", "m2")
    assert judged(story, parked={"m1"}, duplicates={"m2"}).fates == {"m1": "parked", "m2": "lost"}


def test_what_a_purge_took_is_lost(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.call("PurgeQueue", "orders")
    assert offences(story) == []
    story.call("PurgeQueue", "orders-dlq")
    assert offences(story) == [(Offence.LOST, "e1")]


def test_without_a_consumer_what_its_queue_took_and_kept_is_delivered(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.settle("m1")
    assert judge(ACCEPTED, story.calls).fates == {"m1": "delivered"}
    story.bury("r1")
    story.capture("r1")
    story.settle("r1")
    assert judge(ACCEPTED, story.calls).fates == {"m1": "lost"}


def test_letters_sent_straight_to_the_dlq_are_letters(story: Story) -> None:
    story.publish("m1", "e1 anna 1", queue="orders-dlq")
    assert judged(story).fates == {"m1": "waiting"}
    story.settle("m1")
    assert judged(story).fates == {"m1": "lost"}


def test_a_delivery_speaks_for_the_letter_that_is_no_longer_in_its_queue(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-2:1")
    story.consume("r1")
    story.settle("m2")
    assert judged(story).fates == {"m1": "waiting", "m2": "delivered"}


def test_one_redrive_id_speaks_for_one_letter_however_often_it_was_sent(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e1 anna 1")
    for message_id in ("r1", "r2"):
        story.redrive(message_id, "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.settle("m1", "m2")
    assert sorted(judged(story).fates.values()) == ["delivered", "lost"]


# -- one delivery too many


def test_a_letter_that_came_back_may_be_sent_again(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.come_back("r1")
    story.settle("r1")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    story.consume("r2")
    story.settle("m1")
    assert offences(story) == []
    assert (judged(story).sends, judged(story).returns) == (2, 1)


def test_a_letter_sent_again_before_it_came_back_is_one_delivery_too_many(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]


def test_a_return_whose_receive_was_never_answered_has_not_come_back(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1", "failed")
    story.bury("r1")
    story.capture("r1", answered=False)
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]


def test_an_event_sent_again_after_it_was_processed_is_one_delivery_too_many(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.redrive("r2", "e1 anna 1", "letter-2:1")
    story.consume("r2")
    story.settle("m1", "m2")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]
    assert offences(story, replace(SHOP, identity=None)) == [(Offence.DUPLICATE, "md5 of e1")]


def test_a_refused_send_is_no_delivery(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive(None, "e1 anna 1", "letter-1:1", code="InternalError")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    assert offences(story) == []


def test_one_message_that_sqs_hands_out_twice_is_no_offence_but_told(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.consume("r1")
    story.settle("m1")
    assert offences(story) == []
    assert judged(story).redelivered == 1


def test_an_event_processed_as_two_messages_is_found_in_the_consumers_log_alone(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consumed.append({"message_id": "r1", "started": 1.0, "ended": 1.1, "outcome": "ok"})
    story.bury("r1")  # processed, but never deleted
    story.capture("r1")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    story.consume("r2")
    story.settle("m1", "r1")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]


def test_a_resend_that_a_fifo_queue_swallows_delivers_nothing(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.redrive("r1", "e1 anna 1", "letter-1:2", duplicate=True)
    story.consume("r1")
    story.settle("m1")
    assert offences(story) == []
    assert (judged(story).sends, judged(story).swallowed, judged(story).returns) == (2, 1, 0)


# -- order


def dead_lane(story: Story) -> None:
    story.die("m2", "e2 anna 2")
    story.die("m10", "e10 anna 10")
    story.die("m1", "e1 berta 1")


@pytest.mark.parametrize("experiment", [SHOP, ACCEPTED])
def test_a_letter_that_passes_an_earlier_one_is_out_of_order(story: Story, experiment: Experiment) -> None:
    dead_lane(story)
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    assert offences(story, experiment) == [(Offence.REORDERED, "e10")]


@pytest.mark.parametrize("experiment", [SHOP, ACCEPTED])
def test_numbers_order_a_lane_and_other_lanes_do_not_matter(story: Story, experiment: Experiment) -> None:
    dead_lane(story)
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.consume("r2")
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
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.come_back("r2")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    assert offences(story, experiment) == [(Offence.REORDERED, "e10")]


def test_a_letter_that_comes_back_after_the_next_went_may_be_sent_again(story: Story) -> None:
    dead_lane(story)
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.consume("r10")
    story.come_back("r2")
    story.redrive("r2b", "e2 anna 2", "letter-2:2")
    story.consume("r2b")
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
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.come_back("r2")
    story.settle("m2", "r2")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    assert offences(story, parked={"m2"}) == []


def test_of_an_events_two_letters_one_may_be_delivered_and_the_other_step_aside(story: Story) -> None:
    dead_lane(story)
    story.die("m3", "e2 anna 2")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.consume("r2")
    story.redrive("r3", "e2 anna 2", "letter-3:1")
    story.come_back("r3")
    story.settle("m2", "m3", "r3")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    assert (Offence.REORDERED, "e10") in offences(story)  # nobody says that the other stepped aside
    assert (Offence.REORDERED, "e10") not in offences(story, parked={"m3"})


def test_a_letter_that_is_parked_only_later_did_not_step_aside(story: Story) -> None:
    dead_lane(story)
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.come_back("r2")
    story.settle("m2", "r2")
    assert offences(story, parked={"m2"}) == [(Offence.REORDERED, "e10"), (Offence.OVERLAP, "e10")]
    assert offences(story, ACCEPTED, parked={"m2"}) == []  # then nobody waits for what the target took


def test_a_late_letter_sent_after_a_later_one_is_out_of_order_unless_it_was_released(story: Story) -> None:
    story.die("m10", "e10 anna 10")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.consume("r10")
    story.die("m2", "e2 anna 2")
    assert offences(story) == []
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    assert offences(story) == [(Offence.REORDERED, "e2")]
    assert offences(story, released={"m2"}) == []


def test_a_late_letter_may_go_where_all_that_went_of_later_ones_came_back(story: Story) -> None:
    for number in (10, 9):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.redrive("r9", "e9 anna 9", "letter-9:1")
    story.come_back("r9")
    story.settle("m9", "r9")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.come_back("r10")
    story.settle("m10", "r10")
    story.die("m2", "e2 anna 2")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    assert offences(story, parked={"m9", "m10"}) == []


def test_a_late_letter_is_out_of_order_while_any_later_one_is_out(story: Story) -> None:
    for number in (9, 10):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.redrive("r9", "e9 anna 9", "letter-9:1")
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.come_back("r10")
    story.settle("m10", "r10")
    story.die("m2", "e2 anna 2")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    assert offences(story, ACCEPTED, parked={"m10"}) == [(Offence.REORDERED, "e2")]


def test_a_released_letter_did_not_stop_the_others_before(story: Story) -> None:
    dead_lane(story)
    story.redrive("r10", "e10 anna 10", "letter-10:1")
    story.consume("r10")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.consume("r2")
    assert offences(story, released={"m2"}) == []


def test_letters_with_one_number_have_no_order(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e2 anna 1")
    story.redrive("r2", "e2 anna 1", "letter-2:1")
    story.consume("r2")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
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
    story.consume("r10")
    story.consume("r2")
    assert offences(story, ACCEPTED) == []
    assert offences(story, replace(ACCEPTED, fifo=True)) == [(Offence.REORDERED, "e2")]


def test_a_failure_is_no_turn_and_a_second_success_no_step_back(story: Story) -> None:
    fifo = replace(ACCEPTED, fifo=True)
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    story.consume("r2", "failed")
    story.consume("r10")
    story.consume("r2")
    assert offences(story, fifo) == [(Offence.REORDERED, "e2")]
    story.consumed[0]["outcome"] = "ok"
    assert offences(story, fifo) == []


# -- overlap


def test_two_letters_of_a_lane_on_their_way_at_once_overlap_whatever_their_order(story: Story) -> None:
    story.die("m2", "e2 anna 2")
    story.redrive("r2", "e2 anna 2", "letter-2:1")
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
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
    story.consume("r2")
    story.consume("r3")
    assert offences(story, replace(ACCEPTED, fifo=True)) == [(Offence.OVERLAP, "e2"), (Offence.OVERLAP, "e3")]


# -- rate


@pytest.mark.parametrize(("last", "found"), [(2.0, []), (1.999, [(Offence.OVER_RATE, "orders")])])
def test_no_second_holds_more_than_rate_and_burst(story: Story, last: float, found: list[tuple[Offence, str]]) -> None:
    for number, at in enumerate((1.0, 1.4, 1.9, last)):
        story.die(f"m{number}", f"e{number} account-{number} 1")
        story.redrive(f"r{number}", f"e{number} account-{number} 1", f"letter-{number}:1", at=at)
    assert offences(story, replace(SHOP, rate=2, burst=1)) == found
    assert offences(story) == []


# -- attempts


@pytest.mark.parametrize(("most", "found"), [(2, []), (1, [(Offence.OVER_ATTEMPTS, "e1")])])
@pytest.mark.parametrize("accepted", [True, False])
def test_a_letter_is_not_sent_more_often_than_allowed(
    story: Story, most: int, found: list[tuple[Offence, str]], accepted: bool
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}" if accepted else None, "e1 anna 1", f"letter-1:{attempt}")
        if accepted:
            story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=most)) == found


def test_the_attempts_of_an_events_letters_are_counted_apart(story: Story) -> None:
    for number in (1, 2):
        story.die(f"m{number}", "e1 anna 1")
        story.redrive(f"r{number}", "e1 anna 1", f"letter-{number}:1")
        story.come_back(f"r{number}")
    assert offences(story, replace(SHOP, max_attempts=1)) == []


@pytest.mark.parametrize(("until", "found"), [(99.0, []), (1.0, [(Offence.OVER_ATTEMPTS, "e1")])])
def test_what_fails_in_an_outage_of_the_consumer_uses_up_no_attempt(
    story: Story, until: float, found: list[tuple[Offence, str]]
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}", "e1 anna 1", f"letter-1:{attempt}")
        story.consume(f"r{attempt}", "failed")
        story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=1, outages=((0.0, until),))) == found


@pytest.mark.parametrize(("shut", "found"), [((Shut(opened=0.0),), []), ((), [(Offence.OVER_ATTEMPTS, "e1")])])
def test_a_canary_that_fails_uses_up_no_attempt(
    story: Story, shut: tuple[Shut, ...], found: list[tuple[Offence, str]]
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}", "e1 anna 1", f"letter-1:{attempt}")
        story.consume(f"r{attempt}", "failed")
        story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=1), shut=shut) == found


def test_one_attempt_number_used_twice_is_two_sends(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.come_back("r1")
    story.redrive("r2", "e1 anna 1", "letter-1:1")
    assert offences(story, replace(SHOP, max_attempts=1)) == [(Offence.OVER_ATTEMPTS, "e1")]


# -- contents and addresses


def test_another_body_is_found(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1", md5="md5 of something else")
    assert offences(story) == [(Offence.ALTERED, "e1")]


def test_a_lost_attribute_is_found_and_an_added_one_is_fine(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    attributes = {"event_id": "e1", "account": "anna", "sequence": "1", "RedriveId": "letter-1:1", "added": "x"}
    story.redrive("r1", "e1 anna 1", "", attributes=attributes)
    assert offences(story) == []
    del attributes["account"]
    assert offences(story) == [(Offence.ALTERED, "e1")]


def test_a_send_of_a_letter_that_never_died_is_found(story: Story) -> None:
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    assert (Offence.ALTERED, "e1") in offences(story)


def test_a_letter_goes_back_to_the_queue_it_died_in(story: Story) -> None:
    two = replace(SHOP, origins=frozenset({"orders", "invoices"}))
    story.publish("m1", "e1 anna 1", queue="invoices")
    story.bury("m1", source="invoices")
    story.capture("m1")
    story.redrive("r1", "e1 anna 1", "letter-1:1", queue="invoices")
    assert offences(story, two) == []
    story.calls[-1]["queue"] = "orders"
    assert offences(story, two) == [(Offence.ASTRAY, "e1")]


# -- the logs themselves


def test_a_log_with_a_gap_says_nothing(story: Story) -> None:
    dead_lane(story)
    del story.calls[3]
    with pytest.raises(LogIsIncomplete, match="Call 3 is missing, 4 follows"):
        judged(story)


def test_a_mark_that_cannot_be_read_says_nothing(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1")
    with pytest.raises(MarkIsUnreadable, match="RedriveId is 'letter-1' in call 3"):
        judged(story)


def test_a_letter_without_a_number_says_nothing(story: Story) -> None:
    story.die("m1", "e1 anna first")
    with pytest.raises(SequenceIsNoNumber, match="e1, of lane anna, has the sequence 'first'"):
        judged(story)


def test_a_redrive_without_its_mark_delivers_nothing(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.publish("r1", "e1 anna 1")
    story.consume("r1")
    story.settle("m1")
    assert offences(story) == [(Offence.LOST, "e1")]


def test_other_queues_are_nobodys_business(story: Story) -> None:
    story.publish("p1", "e1 anna 1", queue="redrive-control", mark="no mark of ours")
    assert judged(story).fates == {}


# -- brakes


WAVES = replace(SHOP, first_wave=1)
COOLED = replace(SHOP, cooldown=3.0)


def test_a_second_letter_beside_the_first_wave_is_found(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e2 berta 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.redrive("r2", "e2 berta 1", "letter-2:1")
    story.consume("r1")
    story.consume("r2")
    assert offences(story, WAVES) == [(Offence.OVER_WAVE, "e2")]
    assert offences(story, replace(SHOP, first_wave=2)) == []
    assert offences(story, SHOP) == []


@pytest.mark.parametrize("outcome", ["ok", "failed"])
def test_when_the_outcome_of_the_first_wave_is_known_the_next_may_go(story: Story, outcome: str) -> None:
    for number in (1, 2, 3):
        story.die(f"m{number}", f"e{number} account-{number} 1")
    story.redrive("r1", "e1 account-1 1", "letter-1:1")
    if outcome == "ok":
        story.consume("r1")
    else:
        story.come_back("r1")
        story.redrive("r1b", "e1 account-1 1", "letter-1:2")
        story.consume("r1b")
    story.redrive_batch(("r2", "e2 account-2 1", "letter-2:1"), ("r3", "e3 account-3 1", "letter-3:1"))
    story.consume("r2")
    story.consume("r3")
    assert offences(story, WAVES) == []


def test_a_retry_of_the_first_wave_s_letter_belongs_to_no_wave_and_the_next_need_not_wait_for_it(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.die("m2", "e2 berta 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.come_back("r1")
    story.redrive("r1b", "e1 anna 1", "letter-1:2")
    story.redrive("r2", "e2 berta 1", "letter-2:1")
    story.consume("r1b")
    story.consume("r2")
    assert offences(story, WAVES) == []


def sent_at(story: Story, *moments: float) -> None:
    for number, at in enumerate(moments):
        story.die(f"m{number}", f"e{number} account-{number} 1")
        story.redrive(f"r{number}", f"e{number} account-{number} 1", f"letter-{number}:1", at=at)
        story.consume(f"r{number}")


@pytest.mark.parametrize(
    ("moments", "found"),
    [
        ((100.5, 101.9, 103.1, 109.2, 120.1, 120.2), []),  # let go before; two canaries; after it closed
        ((103.1, 103.2), [(Offence.OVER_BREAKER, "orders")]),
        ((102.1,), [(Offence.OVER_BREAKER, "orders")]),
        ((106.1, 106.2), []),  # two cooldowns have passed
        ((106.1, 106.2, 106.3), [(Offence.OVER_BREAKER, "orders")]),
    ],
)
def test_while_a_breaker_is_open_one_letter_goes_for_each_cooldown(
    story: Story, moments: tuple[float, ...], found: list[tuple[Offence, str]]
) -> None:
    sent_at(story, *moments)
    books = Books(shut=(Shut(opened=100, closed=120),))
    judgement = judge(COOLED, story.calls, story.consumed, books)
    assert [(one.offence, one.event) for one in judgement.findings] == found
    assert judgement.canaries == sum(102 < at < 120 for at in moments)
    assert judge(COOLED, story.calls, story.consumed, Books()).findings == ()


def test_a_breaker_that_never_closes_holds_back_to_the_end(story: Story) -> None:
    sent_at(story, 103.5, 500, 900, 900.1)
    assert judge(COOLED, story.calls, story.consumed, Books(shut=(Shut(opened=100),))).canaries == 4
    assert offences(story, replace(COOLED, cooldown=300.0)) == []
    books = Books(shut=(Shut(opened=100),))
    findings = judge(replace(COOLED, cooldown=300.0), story.calls, story.consumed, books).findings
    assert [one.offence for one in findings] == [Offence.OVER_BREAKER] * 4


def test_the_figures_name_every_fate_and_every_offence(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive("r1", "e1 anna 1", "letter-1:1")
    story.consume("r1")
    story.settle("m1")
    zero = ("parked", "discarded", "closed_as_duplicate", "waiting", "lost", "duplicates", "order_violations")
    more = ("overlaps", "over_rate", "over_attempts", "altered", "astray", "returns", "swallowed", "redelivered")
    brakes = ("over_breaker", "over_wave", "canaries")
    rest = dict.fromkeys((*zero, *more, *brakes), 0)
    assert judged(story).counts() == {"letters": 1, "delivered": 1, "sends": 1, **rest}
