from __future__ import annotations

import json

import pytest

from tests.sandbox.sqs.world import World, arn


def test_one_receive_buries_the_dead_and_hands_out_the_living(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    world.send(url, "spent")
    world.receive(url)
    world.send(url, "fresh")
    assert world.bodies(url) == ["fresh"]
    assert world.bodies(dlq) == ["spent"]


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


@pytest.mark.parametrize(
    "policy",
    [
        json.dumps({"deadLetterTargetArn": arn("dlq")}),
        json.dumps({"deadLetterTargetArn": "dummy", "maxReceiveCount": 3}),
        json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 3, "more": 1}),
        json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": True}),
    ],
)
def test_a_redrive_policy_that_cannot_work_is_refused(world: World, policy: str) -> None:
    world.queue("dlq")
    url = world.queue("q")
    code = world.code("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": policy})
    assert code == "InvalidParameterValue"
    assert world.code("CreateQueue", QueueName="r", Attributes={"RedrivePolicy": policy}) == "InvalidParameterValue"
    assert world.attribute(url, "RedrivePolicy") is None


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"redrivePermission": ["allowAll"]},
        {"redrivePermission": {}},
        {"redrivePermission": "byQueue"},
        {"redrivePermission": "byQueue", "sourceQueueArns": []},
        {"redrivePermission": "byQueue", "sourceQueueArns": ["q"]},
    ],
)
def test_an_allow_policy_that_makes_no_sense_is_refused(world: World, policy: dict[str, object]) -> None:
    attributes = {"RedriveAllowPolicy": json.dumps(policy)}
    assert world.code("CreateQueue", QueueName="dlq", Attributes=attributes) == "InvalidParameterValue"
