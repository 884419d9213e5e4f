"""Retention: when SQS itself removes a message, and from when on a dead one is counted."""

from __future__ import annotations

from tests.contract.conftest import Advance, MakePair, MakeQueue
from tests.contract.queues import Counts, Queue, bury

HOUR = 3600


def test_a_message_is_gone_when_its_retention_has_passed(make_queue: MakeQueue, advance: Advance) -> None:
    queue = make_queue(MessageRetentionPeriod=str(HOUR))
    queue.send("old")
    advance(HOUR - 20)
    queue.send("young")
    advance(21)
    assert (queue.counts(), queue.bodies()) == (Counts(1, 0, 0), ["young"])


def test_a_message_in_flight_expires_too(make_queue: MakeQueue, advance: Advance) -> None:
    queue = make_queue(MessageRetentionPeriod=str(HOUR), VisibilityTimeout=str(HOUR // 2))
    queue.send("m")
    advance(HOUR - 20)
    queue.receive_one()
    advance(HOUR)
    assert (queue.counts(), queue.bodies()) == (Counts(0, 0, 0), [])


def test_a_shorter_retention_reaches_messages_that_wait(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    advance(HOUR)
    queue.set(MessageRetentionPeriod="1800")
    advance(901)  # AWS allows itself fifteen minutes
    assert (queue.counts(), queue.bodies()) == (Counts(0, 0, 0), [])


def test_an_expired_head_does_not_block_its_group(make_queue: MakeQueue, advance: Advance) -> None:
    queue = make_queue(fifo=True, MessageRetentionPeriod=str(HOUR))
    queue.send_group("g", "old")
    advance(HOUR - 20)
    queue.send_group("g", "young")
    advance(21)
    assert queue.bodies() == ["young"]


def test_a_standard_dlq_counts_from_the_first_send(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair(MessageRetentionPeriod=str(4 * HOUR))
    source.send("m")
    advance(HOUR)
    bury(source)
    advance(3 * HOUR - 60)
    before = dlq.counts()
    advance(61)
    assert (before, dlq.counts(), dlq.bodies()) == (Counts(1, 0, 0), Counts(0, 0, 0), [])


def test_a_fifo_dlq_counts_from_the_death(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair(fifo=True, MessageRetentionPeriod=str(4 * HOUR))
    source.send_group("g", "m")
    advance(HOUR)
    bury(source)
    advance(4 * HOUR - 60)
    before = dlq.bodies(VisibilityTimeout=0)
    advance(61)
    assert (before, dlq.counts(), dlq.bodies()) == (["m"], Counts(0, 0, 0), [])
