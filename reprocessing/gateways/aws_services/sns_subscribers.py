"""Who listens to a topic or a bus: whom one letter is for, and whom all of it would reach if it was published again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.gateways.aws.clients import eventbridge_client, sns_client
from reprocessing.gateways.aws.errors import reaching
from reprocessing.gateways.aws.queue_address import region_of

_MOST_PAGES: Final = 200  #: of 100 each; who has more knows that it is many
_MATCHED: Final = ("Input", "InputPath", "InputTransformer")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscriber of a topic.

    Attributes:
        protocol: sqs, lambda, http, https, firehose, email and so on.
        endpoint: an ARN, a URL, an address.
        raw: it gets the message alone, and not SNS's notification around it; None where that was not asked.
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
        arn: of the target.
        reshapes: it gets something else than the event: what it was given cannot be told from a dead letter.
        dead_letters: the ARN of its dead-letter queue; empty where it has none.
    """

    rule: str
    arn: str
    reshapes: bool
    dead_letters: str = ""


def subscription(arn: str, role: str = "") -> Subscription:
    """Return the subscription with this ARN.

    Raises:
        QueueIsOutOfReach: there is none, or SNS refused or did not answer.
    """
    with reaching(arn, "GetSubscriptionAttributes", "sns"):
        said = sns_client(region_of(arn), role).get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    raw = str(said.get("RawMessageDelivery", "")).lower() == "true"
    return Subscription(arn, said["TopicArn"], said["Protocol"], said["Endpoint"], raw)


def subscribers(topic: str, role: str = "") -> list[Subscription]:
    """Everybody who has confirmed a subscription to the topic with this ARN.

    Raises:
        QueueIsOutOfReach: SNS refused or did not answer.
    """
    client = sns_client(region_of(topic), role)
    with reaching(topic, "ListSubscriptionsByTopic", "sns"):
        found = list(_all(client.list_subscriptions_by_topic, "Subscriptions", TopicArn=topic))
    # The others have PendingConfirmation or Deleted there.
    return [
        Subscription(said["SubscriptionArn"], said["TopicArn"], said["Protocol"], said["Endpoint"])
        for said in found
        if said["SubscriptionArn"].startswith("arn:")
    ]


def rule_targets(bus: str, role: str = "") -> list[RuleTarget]:
    """The targets of all rules of the bus with this ARN that are switched on and match events.

    Raises:
        QueueIsOutOfReach: EventBridge refused or did not answer.
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
        found += [_target(rule["Arn"], target) for target in targets]
    return found


def count_other_receivers(topic_or_bus: str, failed: str = "", role: str = "") -> int:
    """Return how many get a letter again when it is published again, who are not the one that failed.

    At most: filters of subscriptions and patterns of rules may keep a letter from some of them.

    Args:
        topic_or_bus: an ARN.
        failed: the ARN of the subscription, or of the rule's target, that the letter is for.
        role: that is assumed to ask; empty for the process's own.

    Raises:
        QueueIsOutOfReach: it could not be asked.
    """
    if topic_or_bus.split(":")[2:3] == ["sns"]:
        reached = [receiver.arn for receiver in subscribers(topic_or_bus, role)]
    else:
        reached = [receiver.arn for receiver in rule_targets(topic_or_bus, role)]
    return len(reached) - (1 if failed in reached else 0)


def _target(rule: str, said: Mapping[str, Any]) -> RuleTarget:
    reshapes = any(name in said for name in _MATCHED)
    return RuleTarget(rule, said["Arn"], reshapes, said.get("DeadLetterConfig", {}).get("Arn", ""))


def _all(page: Callable[..., Mapping[str, Any]], name: str, **asked: str) -> Iterator[Mapping[str, Any]]:
    for _ in range(_MOST_PAGES):
        answer = page(**asked)
        yield from answer.get(name, [])
        if not answer.get("NextToken"):
            return
        asked["NextToken"] = answer["NextToken"]
