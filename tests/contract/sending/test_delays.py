"""Delays: per message, per queue, and the limits of both."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance, MakeQueue
from tests.contract.queues import Counts, Queue, refused


@pytest.mark.soak
def test_a_delayed_message_appears_when_its_delay_has_passed(queue: Queue, advance: Advance) -> None:
    queue.send("m", DelaySeconds=900)
    hidden = queue.counts(), queue.bodies()
    advance(880)
    still_hidden = queue.bodies()
    advance(21)
    assert hidden == (Counts(visible=0, in_flight=0, delayed=1), [])
    assert (still_hidden, queue.counts(), queue.bodies()) == ([], Counts(1, 0, 0), ["m"])


def test_the_queues_delay_holds_for_messages_without_their_own(make_queue: MakeQueue, advance: Advance) -> None:
    queue = make_queue(DelaySeconds="100")
    queue.send("the queue's")
    queue.send("longer", DelaySeconds=200)
    queue.send("none", DelaySeconds=0)
    at_once = queue.bodies(VisibilityTimeout=1000)
    advance(101)
    after_100 = queue.bodies(VisibilityTimeout=1000)
    advance(100)
    assert (at_once, after_100, queue.bodies()) == (["none"], ["the queue's"], ["longer"])


@pytest.mark.parametrize("seconds", [-1, 901])
def test_a_delay_beyond_its_range_is_refused(queue: Queue, seconds: int) -> None:
    assert refused(queue.send, DelaySeconds=seconds) == "InvalidParameterValue"


def test_entries_of_a_batch_have_delays_of_their_own(queue: Queue, advance: Advance) -> None:
    queue.send_batch({"Id": "a", "MessageBody": "now"}, {"Id": "b", "MessageBody": "later", "DelaySeconds": 100})
    now = queue.bodies(VisibilityTimeout=1000)
    advance(101)
    assert (now, queue.bodies()) == (["now"], ["later"])


def test_a_fifo_message_cannot_have_a_delay_of_its_own(fifo: Queue) -> None:
    code = refused(fifo.send, DelaySeconds=1, MessageGroupId="g", MessageDeduplicationId="d")
    assert code == "InvalidParameterValue"


def test_a_fifo_queue_may_delay_all_its_messages(make_queue: MakeQueue, advance: Advance) -> None:
    queue = make_queue(fifo=True, DelaySeconds="100")
    queue.send_group("g", "m0", "m1")
    hidden = queue.counts(), queue.bodies()
    advance(101)
    assert hidden == (Counts(visible=0, in_flight=0, delayed=2), [])
    assert queue.bodies() == ["m0", "m1"]


def test_a_new_delay_reaches_waiting_messages_of_a_fifo_queue(fifo: Queue, advance: Advance) -> None:
    fifo.send_group("g", "m0", "m1")
    fifo.set(DelaySeconds="900")
    hidden = fifo.bodies()
    advance(901)
    assert (hidden, fifo.bodies()) == ([], ["m0", "m1"])


def test_a_new_delay_leaves_waiting_messages_of_a_standard_queue_alone(queue: Queue) -> None:
    queue.send("m")
    queue.set(DelaySeconds="900")
    assert queue.bodies() == ["m"]
