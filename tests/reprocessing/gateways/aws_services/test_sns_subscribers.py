"""Who listens: a subscription tells its endpoint, and publishing again says whom it reaches."""

from __future__ import annotations

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.aws_services import sns_subscribers
from reprocessing.gateways.aws_services.sns_subscribers import Subscription
from tests.reprocessing.gateways.aws_stand_in import Aws


def test_a_subscription_tells_its_protocol_and_its_endpoint(aws: Aws) -> None:
    topic, queue = aws.topic(), aws.queue()
    arn = aws.subscribe(topic, queue)
    assert sns_subscribers.subscription(arn) == Subscription("sqs", queue)


def test_a_subscription_or_a_bus_that_is_gone_is_out_of_reach(aws: Aws) -> None:
    arn = f"{aws.topic()}:2bcfbf39-05c3-41de-beaa-fcfcc21c8f55"
    with pytest.raises(QueueUnreachable, match=r"GetSubscriptionAttributes failed: NotFound .*Check its name"):
        sns_subscribers.subscription(arn)
    with pytest.raises(QueueUnreachable, match="ListRules failed: ResourceNotFoundException"):
        sns_subscribers.count_receivers("arn:aws:events:us-east-1:123456789012:event-bus/nowhere")


def test_publishing_again_says_how_many_healthy_subscribers_it_reaches(aws: Aws) -> None:
    topic = aws.topic()
    for _ in range(3):
        aws.subscribe(topic, aws.queue())
    assert sns_subscribers.count_receivers(topic) == 3
    assert sns_subscribers.count_receivers(aws.topic()) == 0


def test_who_has_not_confirmed_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pages:
        def list_subscriptions_by_topic(self, TopicArn: str, NextToken: str = "") -> dict[str, object]:  # noqa: N803
            number = int(NextToken or 0)
            arn = [f"{TopicArn}:1", "PendingConfirmation", "Deleted", f"{TopicArn}:2"][number]
            one = {"SubscriptionArn": arn, "TopicArn": TopicArn, "Protocol": "sqs", "Endpoint": "e"}
            return {"Subscriptions": [one], **({"NextToken": str(number + 1)} if number < 3 else {})}

    monkeypatch.setattr("reprocessing.gateways.aws_services.sns_subscribers.sns_client", lambda *_: Pages())
    topic = "arn:aws:sns:us-east-1:123456789012:t"
    assert sns_subscribers.count_receivers(topic) == 2


@pytest.mark.soak
def test_putting_again_says_how_many_targets_of_rules_it_reaches(aws: Aws) -> None:
    bus, queue, other = aws.bus(), aws.queue(), aws.queue()
    aws.rule(bus, {"source": ["a"]}, {"Arn": queue}, {"Arn": other})
    aws.rule(bus, {"source": ["b"]}, {"Arn": queue}, state="DISABLED")
    aws.rule(bus, {"source": ["c"]})
    assert sns_subscribers.count_receivers(bus) == 2
