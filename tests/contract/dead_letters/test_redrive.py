"""RedrivePolicy and RedriveAllowPolicy: when a message dies, what it keeps, and which policies are refused."""

from __future__ import annotations

import json

import pytest

from tests.contract.conftest import Advance, MakePair, MakeQueue
from tests.contract.queues import Counts, Queue, bury, redrive_policy, refused, system

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"


def test_a_message_dies_when_its_receives_exceed_the_maximum(make_pair: MakePair) -> None:
    source, dlq = make_pair(max_receive_count=3)
    source.send("m")
    received = [source.bodies(VisibilityTimeout=0) for _ in range(3)]
    before = dlq.counts()
    fourth = source.bodies()
    assert (received, before, fourth) == ([["m"]] * 3, Counts(0, 0, 0), [])
    assert (source.counts(), dlq.bodies()) == (Counts(0, 0, 0), ["m"])


def test_a_standard_message_keeps_what_it_carried(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair()
    attributes = {
        "text": {"DataType": "String.label", "StringValue": "é"},
        "raw": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    }
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}
    sent = source.send("bödy", MessageAttributes=attributes, MessageSystemAttributes=header, MessageGroupId="tenant")
    alive = source.receive_one()
    advance(3600)
    bury(source)
    dead = dlq.receive_one()
    assert (dead["MessageId"], dead["Body"], dead["MessageAttributes"]) == (sent["MessageId"], "bödy", attributes)
    assert dead["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    kept = ("SentTimestamp", "AWSTraceHeader", "MessageGroupId", "SenderId")
    assert {name: system(dead)[name] for name in kept} == {name: system(alive)[name] for name in kept}


def test_the_receive_count_goes_on_in_the_dlq(make_pair: MakePair) -> None:
    source, dlq = make_pair(max_receive_count=2)
    source.send("m")
    bury(source)
    counts = [system(dlq.receive_one(VisibilityTimeout=0))["ApproximateReceiveCount"] for _ in range(2)]
    assert counts == ["3", "4"]


def test_a_dead_message_that_is_sent_back_is_a_new_message(make_pair: MakePair) -> None:
    source, dlq = make_pair()
    first = source.send("m")["MessageId"]
    bury(source)
    dead = dlq.receive_one()
    second = source.send(dead["Body"])["MessageId"]
    alive = source.receive_one()
    assert (alive["MessageId"], system(alive)["ApproximateReceiveCount"]) == (second, "1")
    assert "DeadLetterQueueSourceArn" not in system(alive)
    assert first != second


def test_a_dead_message_names_the_queue_it_died_in(make_pair: MakePair, make_queue: MakeQueue) -> None:
    first, dlq = make_pair()
    second = make_queue(RedrivePolicy=redrive_policy(dlq))
    for source, body in ((first, "from first"), (second, "from second")):
        source.send(body)
        bury(source)
    dlq.send("sent to the dlq itself")
    sources = {message["Body"]: system(message).get("DeadLetterQueueSourceArn") for message in dlq.receive()}
    assert sources == {"from first": first.arn, "from second": second.arn, "sent to the dlq itself": None}


def test_the_source_can_be_asked_for_by_name(make_pair: MakePair) -> None:
    source, dlq = make_pair()
    source.send("m")
    bury(source)
    dead = dlq.receive_one(MessageSystemAttributeNames=["DeadLetterQueueSourceArn"])
    assert system(dead) == {"DeadLetterQueueSourceArn": source.arn}


def test_a_group_keeps_its_order_in_the_dlq(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair(fifo=True)
    bodies = ["m0", "m1", "m2", "m3"]
    source.send_group("g", *bodies)
    source.receive()
    advance(31)
    bury(source)
    dead = dlq.receive()
    assert [message["Body"] for message in dead] == bodies
    assert [system(message)["MessageGroupId"] for message in dead] == ["g"] * 4


def test_a_group_goes_on_without_its_dead_head(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair(fifo=True)
    source.send_group("g", "poison", "m1", "m2")
    source.receive(1)
    advance(31)
    received = [source.bodies(1) for _ in range(2)]
    assert [bodies for bodies in received if bodies] == [["m1"]]
    assert dlq.bodies() == ["poison"]


def test_a_fifo_dlq_takes_the_message_id_as_deduplication_id(make_pair: MakePair) -> None:
    source, dlq = make_pair(fifo=True)
    sent = source.send("m", MessageGroupId="g", MessageDeduplicationId="d")
    bury(source)
    assert system(dlq.receive_one())["MessageDeduplicationId"] == sent["MessageId"]


def test_two_messages_with_the_same_deduplication_id_both_reach_the_dlq(make_pair: MakePair, advance: Advance) -> None:
    source, dlq = make_pair(fifo=True)
    source.send("first", MessageGroupId="g", MessageDeduplicationId="d")
    advance(301)
    source.send("second", MessageGroupId="g", MessageDeduplicationId="d")
    bury(source)
    assert dlq.bodies() == ["first", "second"]


@pytest.mark.parametrize("count", [0, -1, 1001, "many", 1.5])
def test_a_maximum_beyond_its_range_is_refused(make_queue: MakeQueue, count: object) -> None:
    source, dlq = make_queue(), make_queue()
    assert refused(source.set, RedrivePolicy=redrive_policy(dlq, count)) == "InvalidParameterValue"
    assert source.attributes("RedrivePolicy") == {}


@pytest.mark.parametrize("count", [1, 1000, "5"])
def test_a_maximum_may_be_one_to_a_thousand(make_queue: MakeQueue, count: object) -> None:
    source, dlq = make_queue(), make_queue()
    source.set(RedrivePolicy=redrive_policy(dlq, count))
    stored = json.loads(source.attributes("RedrivePolicy")["RedrivePolicy"])
    assert (stored["deadLetterTargetArn"], int(stored["maxReceiveCount"])) == (dlq.arn, int(str(count)))


@pytest.mark.parametrize("source_is_fifo", [True, False])
def test_a_dlq_of_the_other_type_is_refused(make_queue: MakeQueue, source_is_fifo: bool) -> None:
    source, dlq = make_queue(fifo=source_is_fifo), make_queue(fifo=not source_is_fifo)
    assert refused(source.set, RedrivePolicy=redrive_policy(dlq)) == "InvalidParameterValue"


def test_a_dlq_that_does_not_exist_is_refused(queue: Queue) -> None:
    policy = json.dumps({"deadLetterTargetArn": f"{queue.arn}-nowhere", "maxReceiveCount": 3})
    assert refused(queue.set, RedrivePolicy=policy) == "InvalidParameterValue"


@pytest.mark.parametrize("policy", ["not json", '["list"]', '{"maxReceiveCount": 3}'], ids=["text", "list", "no-arn"])
def test_a_malformed_policy_is_refused(queue: Queue, policy: str) -> None:
    assert refused(queue.set, RedrivePolicy=policy) == "InvalidParameterValue"


def test_an_empty_policy_takes_the_dlq_away(make_pair: MakePair) -> None:
    source, dlq = make_pair()
    source.send("m")
    source.set(RedrivePolicy="")
    received = [source.bodies(VisibilityTimeout=0) for _ in range(3)]
    assert received == [["m"]] * 3
    assert (source.attributes("RedrivePolicy"), dlq.counts()) == ({}, Counts(0, 0, 0))


@pytest.mark.parametrize("permission", ["allowAll", "denyAll"])
def test_an_allow_policy_is_stored(queue: Queue, permission: str) -> None:
    queue.set(RedriveAllowPolicy=json.dumps({"redrivePermission": permission}))
    stored = json.loads(queue.attributes("RedriveAllowPolicy")["RedriveAllowPolicy"])
    assert stored == {"redrivePermission": permission}


def test_a_dlq_that_denies_all_is_refused(make_queue: MakeQueue) -> None:
    source = make_queue()
    dlq = make_queue(RedriveAllowPolicy=json.dumps({"redrivePermission": "denyAll"}))
    assert refused(source.set, RedrivePolicy=redrive_policy(dlq)) == "InvalidParameterValue"


def test_a_dlq_may_allow_some_queues(make_queue: MakeQueue) -> None:
    named, other = make_queue(), make_queue()
    allowed = {"redrivePermission": "byQueue", "sourceQueueArns": [named.arn]}
    dlq = make_queue(RedriveAllowPolicy=json.dumps(allowed))
    named.set(RedrivePolicy=redrive_policy(dlq))
    assert refused(other.set, RedrivePolicy=redrive_policy(dlq)) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("permission", "queues"),
    [("byQueue", 11), ("allowAll", 1), ("sometimes", 0)],
    ids=["eleven", "list-without-by-queue", "unknown"],
)
def test_an_allow_policy_that_breaks_the_rules_is_refused(queue: Queue, permission: str, queues: int) -> None:
    policy: dict[str, object] = {"redrivePermission": permission}
    if queues:
        policy["sourceQueueArns"] = [f"{queue.arn}-{n}" for n in range(queues)]
    assert refused(queue.set, RedriveAllowPolicy=json.dumps(policy)) == "InvalidParameterValue"


def test_the_sources_of_a_dlq_are_listed(make_pair: MakePair, make_queue: MakeQueue) -> None:
    first, dlq = make_pair()
    second = make_queue(RedrivePolicy=redrive_policy(dlq))
    former = make_queue(RedrivePolicy=redrive_policy(dlq))
    former.set(RedrivePolicy="")
    listed = dlq.client.list_dead_letter_source_queues(QueueUrl=dlq.url)["queueUrls"]
    assert sorted(listed) == sorted([first.url, second.url])


def test_a_queue_that_is_no_dlq_has_no_sources(queue: Queue) -> None:
    assert queue.client.list_dead_letter_source_queues(QueueUrl=queue.url)["queueUrls"] == []


def test_the_sources_of_a_dlq_are_listed_in_pages(make_queue: MakeQueue) -> None:
    dlq = make_queue()
    sources = [make_queue(RedrivePolicy=redrive_policy(dlq)).url for _ in range(5)]
    pages = dlq.client.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dlq.url, PaginationConfig={"PageSize": 2}
    )
    listed = [page["queueUrls"] for page in pages]
    assert [len(page) for page in listed] == [2, 2, 1]
    assert sorted(url for page in listed for url in page) == sorted(sources)
