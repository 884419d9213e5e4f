"""Find the receivers of an SNS topic or an EventBridge bus. All of them would get a letter that is published again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.gateways.aws.clients import eventbridge_client, sns_client
from reprocessing.gateways.aws.errors import reaching
from reprocessing.gateways.aws.queue_address import region_of

_MOST_PAGES: Final = 200  #: most pages that are read, of 100 entries each; further entries are not counted


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscriber of a topic.

    Attributes:
        protocol: sqs, lambda, http, https, firehose, email and so on.
        endpoint: an ARN, a URL or an e-mail address.
    """

    protocol: str
    endpoint: str


def subscription(arn: str, role: str = "") -> Subscription:
    """Return the subscription with this ARN.

    Raises:
        QueueUnreachable: the subscription does not exist, or SNS refused or did not answer.
    """
    with reaching(arn, "GetSubscriptionAttributes", "sns"):
        said = sns_client(region_of(arn), role).get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    return Subscription(said["Protocol"], said["Endpoint"])


def _subscribers(topic: str, role: str) -> list[str]:
    """Return the ARNs of a topic's confirmed subscriptions.

    An unconfirmed subscription has no ARN: SNS returns a word such as PendingConfirmation.
    """
    client = sns_client(region_of(topic), role)
    with reaching(topic, "ListSubscriptionsByTopic", "sns"):
        found = list(_all(client.list_subscriptions_by_topic, "Subscriptions", TopicArn=topic))
    return [said["SubscriptionArn"] for said in found if said["SubscriptionArn"].startswith("arn:")]


def _rule_targets(bus: str, role: str) -> list[str]:
    """Return the ARNs of the targets of a bus's enabled rules.

    Rules without an event pattern are left out: they run on a schedule, not for published events.
    """
    client = eventbridge_client(region_of(bus), role)
    with reaching(bus, "ListRules", "events"):
        rules = [
            rule
            for rule in _all(client.list_rules, "Rules", EventBusName=bus)
            if rule.get("EventPattern") and rule.get("State", "ENABLED") != "DISABLED"
        ]
    found: list[str] = []
    for rule in rules:
        with reaching(rule["Arn"], "ListTargetsByRule", "events"):
            targets = _all(client.list_targets_by_rule, "Targets", Rule=rule["Name"], EventBusName=bus)
            found += [target["Arn"] for target in targets]
    return found


def count_receivers(topic_or_bus: str, role: str = "") -> int:
    """Return how many receivers would get a letter that is published again to this topic or bus.

    The number is an upper bound, because subscription filters and rule patterns may exclude some receivers.

    Raises:
        QueueUnreachable: SNS or EventBridge refused or did not answer.
    """
    receivers = _subscribers if topic_or_bus.split(":")[2:3] == ["sns"] else _rule_targets
    return len(receivers(topic_or_bus, role))


def _all(page: Callable[..., Mapping[str, Any]], name: str, **asked: str) -> Iterator[Mapping[str, Any]]:
    for _ in range(_MOST_PAGES):
        answer = page(**asked)
        yield from answer.get(name, [])
        if not answer.get("NextToken"):
            return
        asked["NextToken"] = answer["NextToken"]
