from __future__ import annotations

import json

import pytest

from tests.sandbox.sqs.world import World, arn


def test_a_message_dies_on_the_receive_after_its_last_allowed_one(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", receives=2, VisibilityTimeout="0")
    attribute = {"x": {"DataType": "Number.int", "StringValue": "7"}}
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    sent = world.send(url, "one", MessageAttributes=attribute, MessageSystemAttributes=header, MessageGroupId="tenant")
    world.later(10)
    assert [len(world.receive(url)), len(world.receive(url))] == [1, 1]
    assert world.counts(dlq) == (0, 0, 0)
    assert world.receive(url) == []
    assert (world.counts(url), world.counts(dlq)) == ((0, 0, 0), (1, 0, 0))
    world.later(10)
    (dead,) = world.receive(dlq)
    assert (dead["MessageId"], dead["Body"], dead["MessageAttributes"]) == (sent["MessageId"], "one", attribute)
    assert dead["Attributes"] == {
        "SenderId": dead["Attributes"]["SenderId"],
        "SentTimestamp": "1800000000000",
        "ApproximateFirstReceiveTimestamp": "1800000010000",
        "ApproximateReceiveCount": "3",
        "MessageGroupId": "tenant",
        "AWSTraceHeader": "Root=1",
        "DeadLetterQueueSourceArn": arn("q"),
    }


def test_one_receive_buries_the_dead_and_hands_out_the_living(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    world.send(url, "spent")
    world.receive(url)
    world.send(url, "fresh")
    assert world.bodies(url) == ["fresh"]
    assert world.bodies(dlq) == ["spent"]


def test_a_standard_dead_letter_queue_counts_retention_from_the_original_send(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    world.set(dlq, MessageRetentionPeriod="100")
    world.send(url, "one")
    world.receive(url)
    world.later(90)
    world.receive(url)
    assert world.counts(dlq) == (1, 0, 0)
    world.later(10)
    assert world.counts(dlq) == (0, 0, 0)


def test_a_dead_letter_that_is_older_than_what_waits_there_ends_first(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    world.set(dlq, MessageRetentionPeriod="100")
    world.send(url, "old")
    world.receive(url)
    world.later(50)
    world.send(dlq, "young")
    world.receive(url)
    world.later(50)
    assert world.bodies(dlq) == ["young"]


def test_a_fifo_dead_letter_queue_keeps_order_and_enqueues_anew(world: World) -> None:
    url, dlq = world.dead_letter_pair("q.fifo", "dlq.fifo", VisibilityTimeout="0")
    world.set(dlq, MessageRetentionPeriod="100")
    sent = world.send_group(url, "g", "1", "2", "3")
    world.receive(url)
    world.later(90)
    assert world.receive(url) == []
    world.later(90)
    dead = world.receive(dlq)
    assert [message["Body"] for message in dead] == ["1", "2", "3"]
    ids = [answer["MessageId"] for answer in sent]
    assert [message["MessageId"] for message in dead] == ids
    assert [message["Attributes"]["MessageDeduplicationId"] for message in dead] == ids
    assert dead[0]["Attributes"]["SentTimestamp"] == "1800000090000"
    assert dead[0]["Attributes"]["SequenceNumber"] > sent[2]["SequenceNumber"]


def test_a_dead_head_lets_its_group_go_on(world: World) -> None:
    url, dlq = world.dead_letter_pair("q.fifo", "dlq.fifo")
    world.send_group(url, "g", "1")
    world.receive(url)
    world.send_group(url, "g", "2")
    assert world.bodies(url) == []
    world.later(30)
    assert world.bodies(url) == ["2"]
    assert world.bodies(dlq) == ["1"]


def test_without_its_dead_letter_queue_a_message_is_handed_out_on_and_on(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    world.send(url, "one")
    world.call("DeleteQueue", QueueUrl=dlq)
    assert [world.bodies(url) for _ in range(3)] == [["one"]] * 3


def test_a_queue_may_be_its_own_dead_letter_queue(world: World) -> None:
    url = world.queue("q", VisibilityTimeout="0")
    world.set(url, RedrivePolicy=json.dumps({"deadLetterTargetArn": arn("q"), "maxReceiveCount": 1}))
    world.send(url, "one")
    assert [world.bodies(url) for _ in range(3)] == [["one"], [], []]
    assert world.counts(url) == (1, 0, 0)


def test_a_numeric_string_is_a_count_and_the_policy_is_shown_normalised(world: World) -> None:
    world.queue("dlq")
    url = world.queue("q", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": "42"}))
    shown = world.attribute(url, "RedrivePolicy")
    assert shown is not None
    assert json.loads(shown) == {"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 42}
    world.set(url, RedrivePolicy="")
    assert world.attribute(url, "RedrivePolicy") is None


@pytest.mark.parametrize(
    "policy",
    [
        "no json",
        "[]",
        json.dumps({"deadLetterTargetArn": arn("dlq")}),
        json.dumps({"maxReceiveCount": 3}),
        json.dumps({"deadLetterTargetArn": "dummy", "maxReceiveCount": 3}),
        json.dumps({"deadLetterTargetArn": arn("missing"), "maxReceiveCount": 3}),
        json.dumps({"deadLetterTargetArn": arn("dlq.fifo"), "maxReceiveCount": 3}),
        json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 3, "more": 1}),
        *(json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": bad}) for bad in (0, 1001, "x", 1.5, True)),
    ],
)
def test_a_redrive_policy_that_cannot_work_is_refused(world: World, policy: str) -> None:
    world.queue("dlq")
    world.queue("dlq.fifo")
    url = world.queue("q")
    code = world.code("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": policy})
    assert code == "InvalidParameterValue"
    assert world.code("CreateQueue", QueueName="r", Attributes={"RedrivePolicy": policy}) == "InvalidParameterValue"
    assert world.attribute(url, "RedrivePolicy") is None


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn("q")]}, True),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn("other")]}, False),
    ],
)
def test_the_dead_letter_queue_says_whose_dead_letters_it_takes(
    world: World, policy: dict[str, object], *, allowed: bool
) -> None:
    dlq = world.queue("dlq", RedriveAllowPolicy=json.dumps(policy))
    assert json.loads(world.attribute(dlq, "RedriveAllowPolicy") or "") == policy
    url = world.queue("q")
    redrive = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 1})}
    if allowed:
        world.call("SetQueueAttributes", QueueUrl=url, Attributes=redrive)
    else:
        assert world.code("SetQueueAttributes", QueueUrl=url, Attributes=redrive) == "InvalidParameterValue"


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"redrivePermission": "sometimes"},
        {"redrivePermission": ["allowAll"]},
        {"redrivePermission": {}},
        {"redrivePermission": "byQueue"},
        {"redrivePermission": "byQueue", "sourceQueueArns": []},
        {"redrivePermission": "byQueue", "sourceQueueArns": [arn(f"q{n}") for n in range(11)]},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["q"]},
        {"redrivePermission": "allowAll", "sourceQueueArns": [arn("q")]},
    ],
)
def test_an_allow_policy_that_makes_no_sense_is_refused(world: World, policy: dict[str, object]) -> None:
    attributes = {"RedriveAllowPolicy": json.dumps(policy)}
    assert world.code("CreateQueue", QueueName="dlq", Attributes=attributes) == "InvalidParameterValue"


def test_the_sources_of_a_dead_letter_queue_are_listed_in_pages(world: World) -> None:
    dlq = world.queue("dlq")
    for name in ("c", "a", "b"):
        world.dead_letter_pair(name, "dlq")
    world.queue("unrelated")
    urls = [f"http://sqs.local/000000000000/{name}" for name in "abc"]
    assert world.call("ListDeadLetterSourceQueues", QueueUrl=dlq) == {"queueUrls": urls}
    page = world.call("ListDeadLetterSourceQueues", QueueUrl=dlq, MaxResults=2)
    assert page["queueUrls"] == urls[:2]
    rest = world.call("ListDeadLetterSourceQueues", QueueUrl=dlq, MaxResults=2, NextToken=page["NextToken"])
    assert rest == {"queueUrls": urls[2:]}
    assert world.call("ListDeadLetterSourceQueues", QueueUrl=world.queue("lonely")) == {"queueUrls": []}
