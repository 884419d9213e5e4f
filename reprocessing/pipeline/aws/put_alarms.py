"""Alarm people through CloudWatch: which alarms are wanted of what is configured, what differs, and making it good."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reprocessing.domain.aws import cloudwatch_alarm
from reprocessing.domain.aws.cloudwatch_alarm import Alarm, Difference, differences
from reprocessing.domain.message.arn import name_of
from reprocessing.gateways.aws_services.cloudwatch_put import alarms, put_alarm
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue
from reprocessing.store.targets import targets


@dataclass(frozen=True, slots=True)
class Look:
    """An alarm as it is wanted, where, and what differs there; nothing where it is as wanted."""

    region: str
    wanted: Alarm
    differences: tuple[Difference, ...]


def look(region: str, namespace: str, *, names: Collection[str] = (), actions: tuple[str, ...] = ()) -> list[Look]:
    """What CloudWatch has of the wanted alarms.

    Args:
        region: of the service, and so of its own metrics.
        namespace: of those; empty: they are not told to CloudWatch, and no alarm on them is wanted.
        names: dlqs; with none all of them, their targets, and the service itself.
        actions: ARNs of what alarms are to tell; with none they keep what they have.

    Raises:
        CloudWatchIsOutOfReach: it refused, or did not answer.
    """
    places = sorted(set(_wanted(region, namespace, names)), key=lambda one: (one[0], one[1].of, one[1].name))
    queues = [QueueAddress(one.url, one.region, one.role_arn) for one in _dlqs(names)]
    found: dict[tuple[str, str], tuple[Difference, ...]] = {}
    for where in dict.fromkeys(place for place, _ in places):
        there = alarms(where, [one.name for place, one in places if place == where], of=queues)
        found |= {
            (where, one.name): differences(one, there.get(one.name), of_region(actions, where))
            for place, one in places
            if place == where
        }
    return [Look(where, one, found[where, one.name]) for where, one in places]


def put(looks: Sequence[Look], actions: tuple[str, ...]) -> Iterator[Look]:
    """Make each alarm that differs what it is wanted to be, one after the other.

    Raises:
        CloudWatchIsOutOfReach: it refused, or did not answer; what was put before stays.
    """
    for one in looks:
        if one.differences:
            put_alarm(one.region, _request(one, of_region(actions, one.region)))
            yield one


def of_region(actions: Collection[str], region: str) -> tuple[str, ...]:
    """What an alarm of this region can tell: CloudWatch takes nothing of another. A few ARNs name no region."""
    return tuple(one for one in actions if one.split(":")[3] in {"", region})


def mute(looks: Collection[Look], actions: Collection[str]) -> list[str]:
    """The regions in which an alarm is to be put that could tell none of these."""
    return sorted({one.region for one in looks if one.differences and not of_region(actions, one.region)})


def elsewhere(names: Collection[str] = ()) -> list[str]:
    """The dlqs of other accounts: the alarms on their queues are for those accounts to set."""
    return [one.name for one in _dlqs(names) if one.role_arn]


def _request(one: Look, actions: tuple[str, ...]) -> dict[str, Any]:
    """With what it has to tell: all of an alarm is replaced, and what it is not given anew is gone."""
    found = alarms(one.region, [one.wanted.name]).get(one.wanted.name, {})
    kept = {name: list(found.get(name, [])) for name in ("OKActions", "InsufficientDataActions")}
    return one.wanted.request(actions or tuple(found.get("AlarmActions", []))) | kept


def _wanted(region: str, namespace: str, names: Collection[str]) -> Iterator[tuple[str, Alarm]]:
    for dlq in _dlqs(names):
        origins = tuple(name_of(one.arn) for one in dlq.origins.all() if ":sqs:" in one.arn)
        every = cloudwatch_alarm.of_dlq(
            dlq.name,
            name_of(dlq.arn),
            origins,
            namespace=namespace or cloudwatch_alarm.NOWHERE,
            retention=dlq.retention,
        )
        for one in every:
            if one.is_of_sqs and not dlq.role_arn:
                yield dlq.region, one
            elif not one.is_of_sqs and namespace:
                yield region, one
    if namespace and not names:
        yield from ((region, one) for one in cloudwatch_alarm.of_service(namespace=namespace))
        for target in targets.names().values():
            yield from ((region, one) for one in cloudwatch_alarm.of_target(target, namespace=namespace))


def _dlqs(names: Collection[str]) -> list[DeadLetterQueue]:
    found = DeadLetterQueue.objects.prefetch_related("origins").order_by("name")
    return list(found.filter(name__in=names) if names else found)
