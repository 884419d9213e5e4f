"""The judge finds messages out of order, and two of a lane at the same time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive_service.sandbox.judge import Offence
from tests.sandbox.call_logs import ACCEPTED, Story, dead_lane, follow, offences, tales


@pytest.fixture
def story() -> Story:
    return Story()


LANE = "die m2 e2 anna 2; die m10 e10 anna 10; die m1 e1 berta 1"


@tales(f"""
a message that passes an earlier one is out of order
  {LANE}; redrive r10 e10 anna 10 letter-10:1
  shop -> REORDERED e10
  accepted -> REORDERED e10

numbers order a key's messages, and other keys do not matter
  {LANE}; redrive r2 e2 anna 2 letter-2:1; consume r2
  redrive r10 e10 anna 10 letter-10:1 + r1 e1 berta 1 letter-1:1
  shop -> nothing
  accepted -> nothing

messages of two keys may be in flight at once
  {LANE}; redrive r2 e2 anna 2 letter-2:1 + r1 e1 berta 1 letter-1:1
  shop -> nothing

the next message waits for the outcome of this one, where outcomes are awaited
  {LANE}; redrive r2 e2 anna 2 letter-2:1 + r10 e10 anna 10 letter-10:1
  accepted -> nothing
  shop -> REORDERED e10, OVERLAP e10

the consumer must see the order too
  {LANE}; redrive r2 e2 anna 2 letter-2:1 + r10 e10 anna 10 letter-10:1; consume r10; consume r2
  accepted -> nothing
  fifo -> REORDERED e2

a message that came back goes before the next
  {LANE}; redrive r2 e2 anna 2 letter-2:1; come_back r2; redrive r10 e10 anna 10 letter-10:1
  shop -> REORDERED e10
  accepted -> REORDERED e10

a message that comes back after the next was sent may be sent again
  {LANE}; redrive r2 e2 anna 2 letter-2:1; redrive r10 e10 anna 10 letter-10:1; consume r10; come_back r2
  redrive r2b e2 anna 2 letter-2:2; consume r2b
  accepted -> nothing
  fifo -> nothing

a message that comes back late goes before what was not sent yet
  die m1 e1 anna 1; die m2 e2 anna 2; die m3 e3 anna 3
  redrive r1 e1 anna 1 letter-1:1; redrive r2 e2 anna 2 letter-2:1; come_back r1; redrive r3 e3 anna 3 letter-3:1
  accepted -> REORDERED e3

a parked message steps aside once all that was sent of it is back
  {LANE}; redrive r2 e2 anna 2 letter-2:1; come_back r2; settle m2 r2; redrive r10 e10 anna 10 letter-10:1
  shop parked=m2 -> nothing

one of an event's two messages may be delivered and the other step aside
  {LANE}; die m3 e2 anna 2; redrive r2 e2 anna 2 letter-2:1; consume r2; redrive r3 e2 anna 2 letter-3:1
  come_back r3; settle m2 m3 r3; redrive r10 e10 anna 10 letter-10:1
  shop -> LOST e2, DUPLICATE e2, REORDERED e10
  shop parked=m3 -> DUPLICATE e2

a message that is parked only later did not step aside, where its outcome is awaited
  {LANE}; redrive r2 e2 anna 2 letter-2:1; redrive r10 e10 anna 10 letter-10:1; come_back r2; settle m2 r2
  shop parked=m2 -> REORDERED e10, OVERLAP e10
  accepted parked=m2 -> nothing

a late message sent after a later one is out of order unless it was released
  die m10 e10 anna 10; redrive r10 e10 anna 10 letter-10:1; consume r10; die m2 e2 anna 2
  shop -> nothing
  redrive r2 e2 anna 2 letter-2:1
  shop -> REORDERED e2
  shop released=m2 -> nothing

a late message may be sent when all that was sent of later ones came back
  die m10 e10 anna 10; die m9 e9 anna 9; redrive r9 e9 anna 9 letter-9:1; come_back r9; settle m9 r9
  redrive r10 e10 anna 10 letter-10:1; come_back r10; settle m10 r10; die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1
  shop parked=m9,m10 -> nothing

a late message is out of order while any later one is in flight
  die m9 e9 anna 9; die m10 e10 anna 10; redrive r9 e9 anna 9 letter-9:1; redrive r10 e10 anna 10 letter-10:1
  come_back r10; settle m10 r10; die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1
  accepted parked=m10 -> REORDERED e2

a released message did not stop the others before
  {LANE}; redrive r10 e10 anna 10 letter-10:1; consume r10; redrive r2 e2 anna 2 letter-2:1; consume r2
  shop released=m2 -> nothing

messages with one number have no order
  die m1 e1 anna 1; die m2 e2 anna 1; redrive r2 e2 anna 1 letter-2:1; consume r2; redrive r1 e1 anna 1 letter-1:1
  shop -> nothing

two messages of a key in flight at once overlap in either order
  die m2 e2 anna 2; redrive r2 e2 anna 2 letter-2:1; die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1
  shop released=m1 -> OVERLAP e1
""")
def test_order(tale: list[str]) -> None:
    follow(tale)


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


def test_a_failure_is_no_turn_and_a_second_success_no_step_back(story: Story) -> None:
    fifo = replace(ACCEPTED, fifo=True)
    dead_lane(story)
    story.redrive_batch(("r2", "e2 anna 2", "letter-2:1"), ("r10", "e10 anna 10", "letter-10:1"))
    story.tell("consume r2 failed; consume r10; consume r2")
    assert offences(story, fifo) == [(Offence.REORDERED, "e2")]
    story.consumed[0]["outcome"] = "ok"
    assert offences(story, fifo) == []


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


@pytest.mark.soak
def test_all_that_is_begun_during_a_long_processing_overlaps_it(story: Story) -> None:
    for number in (1, 2, 3):
        story.die(f"m{number}", f"e{number} anna {number}")
    story.redrive_batch(*((f"r{number}", f"e{number} anna {number}", f"letter-{number}:1") for number in (1, 2, 3)))
    story.consume("r1", lasts=9)
    story.tell("consume r2; consume r3")
    assert offences(story, replace(ACCEPTED, fifo=True)) == [(Offence.OVERLAP, "e2"), (Offence.OVERLAP, "e3")]
