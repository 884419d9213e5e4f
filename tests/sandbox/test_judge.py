"""The judge finds lost and duplicate messages, and changed ones, and none in a clean log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive_service.sandbox.judge import LogIsIncomplete, MarkIsUnreadable, Offence, SequenceIsNoNumber, judge
from tests.sandbox.call_logs import ACCEPTED, SHOP, Story, dead_lane, follow, judged, offences, tales


@pytest.fixture
def story() -> Story:
    return Story()


@tales("""
a message sent back and processed is delivered
  die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; settle m1
  shop -> m1 delivered

a message deleted from its DLQ and never sent is lost, unless the service's records account for it
  die m1 e1 anna 1; settle m1
  shop -> m1 lost, LOST e1
  shop parked=m1 -> m1 parked
  shop discarded=m1 -> m1 discarded
  shop open=m1 -> m1 waiting
  shop released=m1 -> m1 lost, LOST e1

a message called delivered that the consumer failed is lost
  die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; come_back r1; settle m1 r1
  shop -> LOST e1

a dead message that nobody received counts too
  publish m1 e1 anna 1; bury m1; publish m2 e2 anna 2
  shop -> m1 waiting

a duplicate of a delivered message is accounted for by the service's records, not by the delivery alone
  die m1 e1 anna 1; die m2 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; settle m1 m2
  shop duplicates=m2 -> m1 delivered, m2 closed_as_duplicate
  shop -> LOST e1

a duplicate of a message that was not delivered is lost
  die m1 e1 anna 1; die m2 e1 anna 1; settle m1 m2
  shop parked=m1 duplicates=m2 -> m1 parked, m2 lost, LOST e1

a delivery counts for the message that is no longer in its queue
  die m1 e1 anna 1; die m2 e1 anna 1; redrive r1 e1 anna 1 letter-2:1; consume r1; settle m2
  shop -> m1 waiting, m2 delivered

a message sent again before it came back is one delivery too many
  die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; redrive r2 e1 anna 1 letter-1:2
  shop -> DUPLICATE e1

a redrive without its mark delivers nothing
  die m1 e1 anna 1; publish r1 e1 anna 1; consume r1; settle m1
  shop -> LOST e1

a send of a message that never died is found
  redrive r1 e1 anna 1 letter-1:1
  shop -> ALTERED e1, ASTRAY e1
""")
def test_what_is_lost_and_what_is_sent_too_often(tale: list[str]) -> None:
    follow(tale)


def test_a_letter_that_still_lies_in_a_queue_is_waiting(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.delete("m1", queue="orders-dlq", took_effect=False)
    story.tell("die m2 e2 berta 1; redrive r2 e2 berta 1 letter-2:1; settle m2")
    assert judged(story).fates == {"m1": "waiting", "m2": "waiting"}


def test_what_a_purge_took_is_lost(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.call("PurgeQueue", "orders")
    assert offences(story) == []
    story.call("PurgeQueue", "orders-dlq")
    assert offences(story) == [(Offence.LOST, "e1")]


def test_without_a_consumer_what_its_queue_took_and_kept_is_delivered(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; settle m1")
    assert judge(ACCEPTED, story.calls).fates == {"m1": "delivered"}
    story.tell("bury r1; capture r1; settle r1")
    assert judge(ACCEPTED, story.calls).fates == {"m1": "lost"}


def test_letters_sent_straight_to_the_dlq_are_letters(story: Story) -> None:
    story.publish("m1", "e1 anna 1", queue="orders-dlq")
    assert judged(story).fates == {"m1": "waiting"}
    story.settle("m1")
    assert judged(story).fates == {"m1": "lost"}


def test_one_redrive_id_speaks_for_one_letter_however_often_it_was_sent(story: Story) -> None:
    story.tell("die m1 e1 anna 1; die m2 e1 anna 1")
    for message_id in ("r1", "r2"):
        story.redrive(message_id, "e1 anna 1", "letter-1:1")
    story.tell("consume r1; settle m1 m2")
    assert sorted(judged(story).fates.values()) == ["delivered", "lost"]


def test_a_letter_that_came_back_may_be_sent_again(story: Story) -> None:
    story.tell(
        "die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; come_back r1; settle r1",
        "redrive r2 e1 anna 1 letter-1:2; consume r2; settle m1",
    )
    assert offences(story) == []
    assert (judged(story).sends, judged(story).returns) == (2, 1)


def test_a_return_whose_receive_was_never_answered_has_not_come_back(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1 failed; bury r1")
    story.capture("r1", answered=False)
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]


def test_an_event_sent_again_after_it_was_processed_is_one_delivery_too_many(story: Story) -> None:
    story.tell(
        "die m1 e1 anna 1; die m2 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1",
        "redrive r2 e1 anna 1 letter-2:1; consume r2; settle m1 m2",
    )
    assert offences(story) == [(Offence.DUPLICATE, "e1")]
    assert offences(story, replace(SHOP, identity=None)) == [(Offence.DUPLICATE, "md5 of e1")]


def test_a_refused_send_is_no_delivery(story: Story) -> None:
    story.die("m1", "e1 anna 1")
    story.redrive(None, "e1 anna 1", "letter-1:1", code="InternalError")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    assert offences(story) == []


def test_one_message_that_sqs_hands_out_twice_is_no_offence_but_told(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; consume r1; settle m1")
    assert offences(story) == []
    assert judged(story).redelivered == 1


def test_an_event_processed_as_two_messages_is_found_in_the_consumers_log_alone(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1")
    story.consumed.append({"message_id": "r1", "started": 1.0, "ended": 1.1, "outcome": "ok"})
    story.bury("r1")  # processed, but never deleted
    story.capture("r1")
    story.redrive("r2", "e1 anna 1", "letter-1:2")
    story.consume("r2")
    story.settle("m1", "r1")
    assert offences(story) == [(Offence.DUPLICATE, "e1")]


def test_a_resend_that_a_fifo_queue_swallows_delivers_nothing(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1")
    story.redrive("r1", "e1 anna 1", "letter-1:2", duplicate=True)
    story.tell("consume r1; settle m1")
    assert offences(story) == []
    assert (judged(story).sends, judged(story).swallowed, judged(story).returns) == (2, 1, 0)


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


def test_a_letter_goes_back_to_the_queue_it_died_in(story: Story) -> None:
    two = replace(SHOP, sources=frozenset({"orders", "invoices"}))
    story.publish("m1", "e1 anna 1", queue="invoices")
    story.bury("m1", source="invoices")
    story.capture("m1")
    story.redrive("r1", "e1 anna 1", "letter-1:1", queue="invoices")
    assert offences(story, two) == []
    story.calls[-1]["queue"] = "orders"
    assert offences(story, two) == [(Offence.ASTRAY, "e1")]


def test_a_log_with_a_gap_says_nothing(story: Story) -> None:
    dead_lane(story)
    del story.calls[3]
    with pytest.raises(LogIsIncomplete, match="Call 3 is missing, 4 follows"):
        judged(story)


def test_a_mark_that_cannot_be_read_says_nothing(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1")
    with pytest.raises(MarkIsUnreadable, match="RedriveId is 'letter-1' in call 3"):
        judged(story)


def test_a_letter_without_a_number_says_nothing(story: Story) -> None:
    story.die("m1", "e1 anna first")
    with pytest.raises(SequenceIsNoNumber, match="e1, of lane anna, has the sequence 'first'"):
        judged(story)


def test_other_queues_are_nobodys_business(story: Story) -> None:
    story.publish("p1", "e1 anna 1", queue="redrive-control", mark="no mark of ours")
    assert judged(story).fates == {}
