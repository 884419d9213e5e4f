"""Visibility: how long a received message is hidden, and what a receipt handle is still good for."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance, MakeQueue
from tests.contract.queues import Counts, Queue, refused, system

TWELVE_HOURS = 43_200


@pytest.fixture
def slow(make_queue: MakeQueue) -> Queue:
    """A queue whose messages stay hidden for 1,000 seconds."""
    return make_queue(VisibilityTimeout="1000")


@pytest.mark.soak
def test_a_received_message_is_hidden_until_its_timeout(slow: Queue, advance: Advance) -> None:
    sent = slow.send("m")
    slow.receive_one()
    advance(980)
    hidden = slow.counts(), slow.bodies()
    advance(21)
    visible = slow.counts()
    again = slow.receive_one()
    assert hidden == (Counts(visible=0, in_flight=1, delayed=0), [])
    assert visible == Counts(visible=1, in_flight=0, delayed=0)
    assert (again["MessageId"], system(again)["ApproximateReceiveCount"]) == (sent["MessageId"], "2")


def test_a_receive_may_set_a_timeout_of_its_own(slow: Queue, advance: Advance) -> None:
    slow.send("m")
    slow.receive_one(VisibilityTimeout=5)
    advance(6)
    assert slow.bodies() == ["m"]


def test_a_timeout_of_zero_leaves_the_message_visible(slow: Queue) -> None:
    slow.send("m")
    slow.receive_one(VisibilityTimeout=0)
    assert slow.bodies() == ["m"]


@pytest.mark.parametrize("seconds", [-1, TWELVE_HOURS + 1])
def test_a_receive_refuses_a_timeout_beyond_the_range(queue: Queue, seconds: int) -> None:
    assert refused(queue.receive, VisibilityTimeout=seconds) == "InvalidParameterValue"


def test_a_changed_timeout_counts_from_the_change(slow: Queue, advance: Advance) -> None:
    slow.send("m")
    message = slow.receive_one()
    advance(900)
    slow.hide(message, 500)
    advance(480)
    hidden = slow.bodies()
    advance(21)
    assert (hidden, slow.bodies()) == ([], ["m"])


def test_a_timeout_can_be_shortened(slow: Queue, advance: Advance) -> None:
    slow.send("m")
    slow.hide(slow.receive_one(), 10)
    advance(11)
    assert slow.bodies() == ["m"]


def test_a_timeout_changed_to_zero_frees_the_message_at_once(slow: Queue) -> None:
    slow.send("m")
    slow.hide(slow.receive_one(), 0)
    assert (slow.counts(), slow.bodies()) == (Counts(visible=1, in_flight=0, delayed=0), ["m"])


def test_a_changed_timeout_is_forgotten_by_the_next_receive(slow: Queue, advance: Advance) -> None:
    slow.send("m")
    slow.hide(slow.receive_one(), 5)
    advance(6)
    slow.receive_one()
    advance(900)
    assert slow.bodies() == []


def test_hiding_ends_twelve_hours_after_the_receive(slow: Queue, advance: Advance) -> None:
    slow.send("m")
    advance(7200)
    message = slow.receive_one()
    slow.hide(message, TWELVE_HOURS - 60)
    advance(3600)
    assert refused(slow.hide, message, TWELVE_HOURS - 3500) == "InvalidParameterValue"
    slow.hide(message, TWELVE_HOURS - 3700)
    advance(TWELVE_HOURS - 3800)
    assert slow.bodies() == []


@pytest.mark.parametrize("seconds", [-1, TWELVE_HOURS + 1])
def test_a_change_refuses_a_timeout_beyond_the_range(slow: Queue, seconds: int) -> None:
    slow.send("m")
    assert refused(slow.hide, slow.receive_one(), seconds) == "InvalidParameterValue"


def test_a_deleted_message_cannot_be_hidden(slow: Queue) -> None:
    slow.send("m")
    message = slow.receive_one()
    slow.delete(message)
    assert refused(slow.hide, message, 60) == "InvalidParameterValue"


def test_every_receive_has_a_handle_of_its_own(queue: Queue) -> None:
    queue.send("m")
    handles = {queue.receive_one(VisibilityTimeout=0)["ReceiptHandle"] for _ in range(3)}
    assert len(handles) == 3


def test_deleting_twice_is_no_error(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    message = queue.receive_one()
    queue.delete(message)
    queue.delete(message)
    advance(31)
    assert (queue.counts(), queue.bodies()) == (Counts(0, 0, 0), [])


def test_an_expired_handle_still_deletes_from_a_standard_queue(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    message = queue.receive_one()
    advance(31)
    queue.delete(message)
    assert queue.counts() == Counts(0, 0, 0)


def test_an_old_handle_is_no_error_on_a_standard_queue_and_the_newest_deletes(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    old = queue.receive_one(VisibilityTimeout=0)
    newest = queue.receive_one()
    queue.delete(old)  # AWS promises success, and leaves open whether the message goes
    queue.delete(newest)
    advance(31)
    assert (queue.counts(), queue.bodies()) == (Counts(0, 0, 0), [])


def test_an_expired_handle_cannot_delete_from_a_fifo_queue(fifo: Queue, advance: Advance) -> None:
    fifo.send_group("g", "m")
    message = fifo.receive_one()
    advance(31)
    assert refused(fifo.delete, message) == "InvalidParameterValue"
    assert fifo.bodies() == ["m"]


def test_an_old_handle_cannot_delete_what_another_consumer_of_a_fifo_queue_holds(fifo: Queue, advance: Advance) -> None:
    fifo.send_group("g", "m")
    old = fifo.receive_one()
    advance(31)
    newest = fifo.receive_one()
    assert refused(fifo.delete, old) == "InvalidParameterValue"
    assert fifo.counts() == Counts(visible=0, in_flight=1, delayed=0)
    fifo.delete(newest)
    assert fifo.counts() == Counts(0, 0, 0)


def test_an_expired_handle_fails_in_a_batch_of_a_fifo_queue(fifo: Queue, advance: Advance) -> None:
    fifo.send_group("g", "m0")
    expired = fifo.receive_one()
    advance(31)
    fifo.send_group("h", "m1")
    valid = next(message for message in fifo.receive() if message["Body"] == "m1")
    answer = fifo.client.delete_message_batch(
        QueueUrl=fifo.url,
        Entries=[
            {"Id": "expired", "ReceiptHandle": expired["ReceiptHandle"]},
            {"Id": "valid", "ReceiptHandle": valid["ReceiptHandle"]},
        ],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["valid"]
    assert [(entry["Id"], entry["SenderFault"]) for entry in answer["Failed"]] == [("expired", True)]


def test_an_extended_handle_deletes_from_a_fifo_queue_after_the_first_timeout(fifo: Queue, advance: Advance) -> None:
    fifo.send_group("g", "m")
    message = fifo.receive_one()
    fifo.hide(message, 1000)
    advance(900)
    fifo.delete(message)
    assert fifo.counts() == Counts(0, 0, 0)
