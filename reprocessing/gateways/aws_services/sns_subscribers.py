"""List the receivers of a topic or a bus: all of them would get a letter that is published again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.gateways.aws.clients import eventbridge_client, sns_client
from reprocessing.gateways.aws.errors import reaching
from reprocessing.gateways.aws.queue_address import region_of

_MOST_PAGES: Final = 200  #: pages of 100 entries; further entries are not counted
_MATCHED: Final = ("Input", "InputPath", "InputTransformer")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscriber of a topic.

    Attributes:
        protocol: sqs, lambda, http, https, firehose, email and so on.
        endpoint: an ARN, a URL or an e-mail address.
        raw: whether raw message delivery is on: the message without SNS's JSON around it. None: not known.
    """

    arn: str
    topic: str
    protocol: str
    endpoint: str
    raw: bool | None = None


@dataclass(frozen=True, slots=True)
class RuleTarget:
    """One target of a rule of a bus.

    Attributes:
        arn: the ARN of the target.
        reshapes: whether the rule transforms the event's input, so that a dead letter does not show what was sent.
        dead_letters: the ARN of the target's dead-letter queue; empty: none.
    """

    rule: str
    arn: str
    reshapes: bool
    dead_letters: str = ""


def subscription(arn: str, role: str = "") -> Subscription:
    """Return the subscription with this ARN.

    Raises:
        QueueUnreachable: the subscription does not exist, or SNS refused or did not answer.
    """
    with reaching(arn, "GetSubscriptionAttributes", "sns"):
        said = sns_client(region_of(arn), role).get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    raw = str(said.get("RawMessageDelivery", "")).lower() == "true"
    return Subscription(arn, said["TopicArn"], said["Protocol"], said["Endpoint"], raw)


def subscribers(topic: str, role: str = "") -> list[Subscription]:
    """Return the confirmed subscriptions of the topic with this ARN.

    Raises:
        QueueUnreachable: SNS refused or did not answer.
    """
    client = sns_client(region_of(topic), role)
    with reaching(topic, "ListSubscriptionsByTopic", "sns"):
        found = list(_all(client.list_subscriptions_by_topic, "Subscriptions", TopicArn=topic))
    # Unconfirmed subscriptions have PendingConfirmation or Deleted instead of an ARN.
    return [
        Subscription(said["SubscriptionArn"], said["TopicArn"], said["Protocol"], said["Endpoint"])
        for said in found
        if said["SubscriptionArn"].startswith("arn:")
    ]


def rule_targets(bus: str, role: str = "") -> list[RuleTarget]:
    """Return the targets of all enabled rules with an event pattern on the bus with this ARN.

    Raises:
        QueueUnreachable: EventBridge refused or did not answer.
    """
    client = eventbridge_client(region_of(bus), role)
    with reaching(bus, "ListRules", "events"):
        rules = [
            rule
            for rule in _all(client.list_rules, "Rules", EventBusName=bus)
            if rule.get("EventPattern") and rule.get("State", "ENABLED") != "DISABLED"
        ]
    found: list[RuleTarget] = []
    for rule in rules:
        with reaching(rule["Arn"], "ListTargetsByRule", "events"):
            targets = list(_all(client.list_targets_by_rule, "Targets", Rule=rule["Name"], EventBusName=bus))
        found += [
            RuleTarget(
                rule["Arn"], target["Arn"], any(name in target for name in _MATCHED),
                target.get("DeadLetterConfig", {}).get("Arn", ""),
            )
            for target in targets
        ]  # fmt: skip
    return found


def count_other_receivers(topic_or_bus: str, failed: str = "", role: str = "") -> int:
    """Return how many receivers, except the one that failed, would get a letter that is published again.

    This is an upper bound: subscription filters and rule patterns may exclude some receivers. `failed`: the ARN of the
    subscription, or of the rule's target, for which the letter is.

    Raises:
        QueueUnreachable: SNS or EventBridge refused or did not answer.
    """
    receivers = subscribers if topic_or_bus.split(":")[2:3] == ["sns"] else rule_targets
    reached = [receiver.arn for receiver in receivers(topic_or_bus, role)]
    return len(reached) - (failed in reached)


def _all(page: Callable[..., Mapping[str, Any]], name: str, **asked: str) -> Iterator[Mapping[str, Any]]:
    for _ in range(_MOST_PAGES):
        answer = page(**asked)
        yield from answer.get(name, [])
        if not answer.get("NextToken"):
            return
        asked["NextToken"] = answer["NextToken"]
