"""Compare the wanted CloudWatch alarms with the existing alarms, and create or replace alarms that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reprocessing.domain.aws import cloudwatch_alarm
from reprocessing.domain.aws.cloudwatch_alarm import Alarm, Difference, differences
from reprocessing.domain.message.arn import resource_name
from reprocessing.gateways.aws_services.cloudwatch_put import alarms, put_alarm
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue
from reprocessing.store.targets import targets


@dataclass(frozen=True, slots=True)
class AlarmComparison:
    """A wanted alarm, and how the existing alarm of this name differs from it.

    `differences`: empty if the alarm need not be changed. `region`: where the alarm is.
    """

    region: str
    wanted: Alarm
    differences: tuple[Difference, ...]


def compare_alarms(
    region: str, namespace: str, *, names: Collection[str] = (), actions: tuple[str, ...] = ()
) -> list[AlarmComparison]:
    """Compare the wanted alarms with the alarms that exist in CloudWatch. Return one comparison for each wanted alarm.

    Args:
        region: the region of the service and of its own metrics.
        namespace: the namespace of the service's own metrics; empty: these are not published, so they get no alarms.
        names: names of DLQs; empty: all DLQs, their targets, and the service itself.
        actions: ARNs that alarms notify; empty: alarms keep their actions.

    Raises:
        CloudWatchUnreachable: CloudWatch refused, or did not answer.
    """
    wanted: dict[str, list[Alarm]] = {}
    for where, alarm in sorted(set(_wanted(region, namespace, names)), key=lambda it: (it[0], it[1].dlq, it[1].name)):
        wanted.setdefault(where, []).append(alarm)
    queues = [QueueAddress(dlq.url, dlq.region, dlq.role_arn) for dlq in _dlqs(names)]
    looks = []
    for where, of_there in wanted.items():
        found = alarms(where, [alarm.name for alarm in of_there], of=queues)
        usable = actions_in_region(actions, where)
        looks += [
            AlarmComparison(where, alarm, differences(alarm, found.get(alarm.name), usable)) for alarm in of_there
        ]
    return looks


def put_differing(looks: Sequence[AlarmComparison], actions: tuple[str, ...]) -> Iterator[AlarmComparison]:
    """Create or replace each alarm that differs, and yield its comparison afterwards.

    Raises:
        CloudWatchUnreachable: CloudWatch refused, or did not answer. Alarms that were put before stay.
    """
    for wanted in looks:
        if wanted.differences:
            put_alarm(wanted.region, _request(wanted, actions_in_region(actions, wanted.region)))
            yield wanted


def actions_in_region(actions: Collection[str], region: str) -> tuple[str, ...]:
    """Return, of these action ARNs, those that alarms of a region can use: with this region, or without any."""
    return tuple(action for action in actions if action.split(":")[3] in {"", region})


def regions_without_action(looks: Collection[AlarmComparison], actions: Collection[str]) -> list[str]:
    """Return the regions in which an alarm is to be created or replaced, but can use none of these actions.

    An alarm can use only actions in its own region.
    """
    return sorted(
        {wanted.region for wanted in looks if wanted.differences and not actions_in_region(actions, wanted.region)}
    )


def dlqs_of_other_accounts(names: Collection[str] = ()) -> list[str]:
    """Return the names of DLQs in other accounts.

    Alarms on such a queue must be created in the queue's account, by other means than this service.
    """
    return [dlq.name for dlq in _dlqs(names) if dlq.role_arn]


def _request(look: AlarmComparison, actions: tuple[str, ...]) -> dict[str, Any]:
    """Return the PutMetricAlarm request for a wanted alarm.

    The request replaces the whole alarm, so it repeats the actions that the existing alarm has.
    """
    found = alarms(look.region, [look.wanted.name]).get(look.wanted.name, {})
    kept = {name: list(found.get(name, [])) for name in ("OKActions", "InsufficientDataActions")}
    return look.wanted.request(actions or tuple(found.get("AlarmActions", []))) | kept


def _wanted(region: str, namespace: str, names: Collection[str]) -> Iterator[tuple[str, Alarm]]:
    for dlq in _dlqs(names):
        sources = tuple(resource_name(source.arn) for source in dlq.sources.all() if ":sqs:" in source.arn)
        space = namespace or cloudwatch_alarm.UNPUBLISHED_NAMESPACE
        for alarm in cloudwatch_alarm.alarms_of_dlq(
            dlq.name, resource_name(dlq.arn), sources, namespace=space, retention=dlq.retention
        ):
            if alarm.is_on_sqs_metrics and not dlq.role_arn:
                yield dlq.region, alarm
            elif not alarm.is_on_sqs_metrics and namespace:
                yield region, alarm
    if namespace and not names:
        yield from ((region, alarm) for alarm in cloudwatch_alarm.alarms_of_service(namespace=namespace))
        for target in targets.names_in_metrics().values():
            yield from ((region, alarm) for alarm in cloudwatch_alarm.alarms_of_target(target, namespace=namespace))


def _dlqs(names: Collection[str]) -> list[DeadLetterQueue]:
    found = DeadLetterQueue.objects.prefetch_related("sources").order_by("name")
    return list(found.filter(name__in=names) if names else found)
