"""Deduplication in FIFO queues: by id, by content, in both scopes, for five minutes."""

from __future__ import annotations

import hashlib

import pytest

from tests.contract.conftest import PATIENCE, Advance, Background, MakePair, MakeQueue
from tests.contract.queues import Counts, Queue, bury, redrive_policy, system

FIVE_MINUTES = 300


@pytest.fixture
def by_group(make_queue: MakeQueue) -> Queue:
    return make_queue(fifo=True, DeduplicationScope="messageGroup")


def test_a_second_send_with_the_same_id_is_accepted_and_not_delivered(fifo: Queue) -> None:
    fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    fifo.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    assert fifo.bodies() == ["first"]


def test_a_duplicate_is_answered_with_the_first_message_id(fifo: Queue) -> None:
    first = fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    second = fifo.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    assert second["MessageId"] == first["MessageId"]


def test_deduplication_outlives_the_deletion_for_five_minutes(fifo: Queue, advance: Advance) -> None:
    fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    fifo.delete(fifo.receive_one())
    advance(FIVE_MINUTES - 20)
    fifo.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    assert fifo.counts() == Counts(0, 0, 0)


def test_deduplication_ends_after_five_minutes(fifo: Queue, advance: Advance) -> None:
    first = fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    fifo.delete(fifo.receive_one())
    advance(FIVE_MINUTES + 1)
    second = fifo.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    assert fifo.bodies() == ["second"]
    assert second["MessageId"] != first["MessageId"]


def test_deduplication_ends_after_five_minutes_also_while_the_first_message_waits(
    fifo: Queue, advance: Advance
) -> None:
    fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    advance(FIVE_MINUTES - 20)
    fifo.send("swallowed", MessageGroupId="g", MessageDeduplicationId="d")
    advance(21)
    fifo.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    assert fifo.bodies() == ["first", "second"]


def test_senders_at_once_with_one_id_all_succeed_and_one_message_is_delivered(
    fifo: Queue, background: Background
) -> None:
    sends = [background(fifo.send, f"m{n}", MessageGroupId="g", MessageDeduplicationId="d") for n in range(8)]
    message_ids = {send.result(PATIENCE)["MessageId"] for send in sends}
    assert {message["MessageId"] for message in fifo.receive()} == message_ids
    assert len(message_ids) == 1


def test_a_dead_message_sent_back_under_its_first_id_is_swallowed(make_pair: MakePair) -> None:
    source, dlq = make_pair(fifo=True)
    sent = source.send("m", MessageGroupId="g", MessageDeduplicationId="d")
    bury(source)
    again = source.send("m", MessageGroupId="g", MessageDeduplicationId="d")
    assert (again["MessageId"], source.counts()) == (sent["MessageId"], Counts(0, 0, 0))
    under_another = source.send("m", MessageGroupId="g", MessageDeduplicationId="d-attempt-2")
    assert source.receive_one()["MessageId"] == under_another["MessageId"]
    assert dlq.counts() == Counts(visible=1, in_flight=0, delayed=0)


def test_a_dead_message_sent_back_with_its_body_is_swallowed_where_content_decides(
    make_queue: MakeQueue, by_content: Queue
) -> None:
    source = make_queue(fifo=True, ContentBasedDeduplication="true", RedrivePolicy=redrive_policy(by_content))
    source.send("m", MessageGroupId="g")
    bury(source)
    source.send("m", MessageGroupId="g")
    assert (source.counts(), by_content.bodies()) == (Counts(0, 0, 0), ["m"])


def test_duplicates_in_one_batch_are_all_accepted_and_one_is_delivered(fifo: Queue) -> None:
    answer = fifo.send_batch(
        {"Id": "a", "MessageBody": "first", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
        {"Id": "b", "MessageBody": "second", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a", "b"]
    assert fifo.bodies() == ["first"]


def test_content_decides_and_attributes_do_not(by_content: Queue) -> None:
    for value in ("one", "two"):
        attributes = {"a": {"DataType": "String", "StringValue": value}}
        by_content.send("same", MessageGroupId="g", MessageAttributes=attributes)
    by_content.send("other", MessageGroupId="g")
    assert by_content.bodies() == ["same", "other"]


def test_the_id_made_from_the_content_is_its_sha256(by_content: Queue) -> None:
    by_content.send("body", MessageGroupId="g")
    made = hashlib.sha256(b"body").hexdigest()
    by_content.send("another body", MessageGroupId="g", MessageDeduplicationId=made)
    message = by_content.receive_one()
    assert (message["Body"], system(message)["MessageDeduplicationId"]) == ("body", made)


def test_an_explicit_id_overrides_the_content(by_content: Queue) -> None:
    for identity in ("d1", "d2"):
        by_content.send("same", MessageGroupId="g", MessageDeduplicationId=identity)
    assert by_content.bodies() == ["same", "same"]


def test_content_deduplication_outlives_the_deletion(by_content: Queue) -> None:
    by_content.send("same", MessageGroupId="g")
    by_content.delete(by_content.receive_one())
    by_content.send("same", MessageGroupId="g")
    assert by_content.counts() == Counts(0, 0, 0)


def test_an_id_counts_for_the_whole_queue(fifo: Queue) -> None:
    fifo.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    fifo.send("second", MessageGroupId="h", MessageDeduplicationId="d")
    assert fifo.bodies() == ["first"]


def test_an_id_counts_for_its_group_where_the_scope_is_the_group(by_group: Queue) -> None:
    by_group.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    by_group.send("second", MessageGroupId="h", MessageDeduplicationId="d")
    by_group.send("third", MessageGroupId="g", MessageDeduplicationId="d")
    assert sorted(by_group.bodies()) == ["first", "second"]


def test_an_id_counts_for_one_queue_only(make_queue: MakeQueue) -> None:
    queues = [make_queue(fifo=True) for _ in range(2)]
    for queue in queues:
        queue.send("m", MessageGroupId="g", MessageDeduplicationId="d")
    assert [queue.bodies() for queue in queues] == [["m"], ["m"]]
