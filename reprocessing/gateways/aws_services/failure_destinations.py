"""Find the SQS queues to which Lambda functions, SNS subscriptions and EventBridge rules send their failed messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from reprocessing.domain.dlqs.discovery import FailureSource, SourceKind
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.gateways.aws.clients import READ_SECONDS, eventbridge_client, lambda_client, sns_client
from reprocessing.gateways.aws.errors import code_of, reaching
from reprocessing.gateways.aws.non_aws_queues import is_only_sqs_outside_aws
from reprocessing.gateways.aws.request_pace import RequestPace
from reprocessing.gateways.aws.request_threads import run_in_parallel

Item = TypeVar("Item")

#: Requests at a time. Lambda allows 15 control requests a second, for the whole account.
_THREADS: Final = 4
_GONE: Final = frozenset({"ResourceNotFoundException", "NotFound", "NotFoundException"})


@dataclass(frozen=True, slots=True)
class DestinationPage:
    """One page of sources with the queues that get their failed messages.

    `next_marker`: where the next page begins; empty if this is the last page.
    """

    sources: list[FailureSource]
    next_marker: str


_NOTHING: Final = DestinationPage([], "")
#: A function that reads the page that begins at a marker (empty: the first page). Its arguments are region, role,
#: marker and pace.
ReadPage: TypeAlias = Callable[[str, str, str, RequestPace], DestinationPage]


def function_destinations(region: str, role: str, marker: str, pace: RequestPace) -> DestinationPage:
    """Return one page of the queues that Lambda functions name as dead-letter queue or on-failure destination.

    `marker`: the `next_marker` of the page before; empty for the first page.

    Raises:
        QueueUnreachable: Lambda refused or did not answer.
    """
    client = lambda_client(region, role, seconds=READ_SECONDS, connections=_THREADS)
    if is_only_sqs_outside_aws(client, region, role):
        return _NOTHING
    asked = {"Marker": marker} if marker else {}
    answer = _asked(pace, client.list_functions, region, "lambda:ListFunctions", **asked)
    found = [(said["FunctionArn"], said.get("DeadLetterConfig", {}).get("TargetArn")) for said in answer["Functions"]]

    def destinations(function: str) -> list[tuple[str, str | None]]:
        configs = _pages(
            pace, client.list_function_event_invoke_configs, function, "lambda:ListFunctionEventInvokeConfigs",
            ("FunctionEventInvokeConfigs", "NextMarker", "Marker"), FunctionName=function,
        )  # fmt: skip
        return [
            (one["FunctionArn"], one.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"))
            for one in configs
        ]

    for some in run_in_parallel(_if_there(destinations), [function for function, _ in found], _THREADS):
        found += some
    return DestinationPage(_sources(SourceKind.FUNCTION, found), answer.get("NextMarker") or "")


def subscription_destinations(region: str, role: str, marker: str, pace: RequestPace) -> DestinationPage:
    """Return one page of the dead-letter queues of SNS subscriptions. Unconfirmed subscriptions are left out.

    `marker`: the `next_marker` of the page before; empty for the first page.

    Raises:
        QueueUnreachable: SNS refused or did not answer.
    """
    client = sns_client(region, role)
    if is_only_sqs_outside_aws(client, region, role):
        return _NOTHING
    asked = {"NextToken": marker} if marker else {}
    answer = _asked(pace, client.list_subscriptions, region, "sns:ListSubscriptions", **asked)
    confirmed = [
        arn for said in answer["Subscriptions"] if (arn := said["SubscriptionArn"]).startswith("arn:")
    ]  # a subscription that is not confirmed yet has no ARN

    def destinations(subscription: str) -> list[tuple[str, str | None]]:
        said = _asked(
            pace, client.get_subscription_attributes, subscription, "sns:GetSubscriptionAttributes",
            SubscriptionArn=subscription,
        )["Attributes"]  # fmt: skip
        return [(subscription, json.loads(said.get("RedrivePolicy") or "{}").get("deadLetterTargetArn"))]

    found = [one for some in run_in_parallel(_if_there(destinations), confirmed, _THREADS) for one in some]
    return DestinationPage(_sources(SourceKind.SUBSCRIPTION, found), answer.get("NextToken") or "")


def rule_destinations(region: str, role: str, _marker: str, pace: RequestPace) -> DestinationPage:
    """Return the dead-letter queues of the targets of EventBridge rules, all on one page.

    `_marker` is ignored, because there is only one page.

    Raises:
        QueueUnreachable: EventBridge refused or did not answer.
    """
    client, token = eventbridge_client(region, role), ("NextToken", "NextToken")
    if is_only_sqs_outside_aws(client, region, role):
        return _NOTHING
    buses = _pages(pace, client.list_event_buses, region, "events:ListEventBuses", ("EventBuses", *token))

    def rules(bus: str) -> list[Mapping[str, Any]]:
        return _pages(pace, client.list_rules, bus, "events:ListRules", ("Rules", *token), EventBusName=bus)

    def sources(rule: Mapping[str, Any]) -> list[FailureSource]:
        bus = {"EventBusName": rule["EventBusName"]} if "EventBusName" in rule else {}
        targets = _pages(
            pace, client.list_targets_by_rule, rule["Arn"], "events:ListTargetsByRule", ("Targets", *token),
            Rule=rule["Name"], **bus,
        )  # fmt: skip
        found = ((one["Arn"], one.get("DeadLetterConfig", {}).get("Arn")) for one in targets)
        return _sources(SourceKind.RULE, found, through=rule["Arn"])

    on_buses = run_in_parallel(_if_there(rules), [bus["Name"] for bus in buses], _THREADS)
    every = [rule for some in on_buses for rule in some]
    return DestinationPage([one for some in run_in_parallel(_if_there(sources), every, _THREADS) for one in some], "")


def _sources(kind: SourceKind, found: Iterable[tuple[str, str | None]], *, through: str = "") -> list[FailureSource]:
    """Return the sources whose failed messages go to an SQS queue. `found`: pairs of a source's ARN and destination.

    Sources whose failed messages go to a topic, a function or a bus are left out.
    """
    return [
        FailureSource(queue.text, arn.text if (arn := read(source)) else source, kind, through)
        for source, destination in found
        if destination and (queue := read(destination)) and queue.named is ResourceKind.QUEUE
    ]


def _if_there(act: Callable[[Item], list[Any]]) -> Callable[[Item], list[Any]]:
    """Return a function that calls `act`, and returns an empty list if the resource was deleted after it was listed."""

    def run(item: Item) -> list[Any]:
        with suppress(_Deleted):
            return act(item)
        return []

    return run


class _Deleted(Exception):
    """A resource was deleted after it was listed."""


def _asked(
    pace: RequestPace, method: Callable[..., dict[str, Any]], about: str, action: str, **asked: Any,  # noqa: ANN401
) -> dict[str, Any]:  # fmt: skip
    service, _, name = action.partition(":")

    def call() -> dict[str, Any]:
        with reaching(about, name, service):
            return method(**asked)

    try:
        return pace.request(call)
    except QueueUnreachable as error:
        if isinstance(error.__cause__, ClientError) and code_of(error.__cause__) in _GONE:
            raise _Deleted from error
        raise


def _pages(
    pace: RequestPace, method: Callable[..., dict[str, Any]], about: str, action: str, names: tuple[str, str, str],
    **asked: Any,  # noqa: ANN401
) -> list[Mapping[str, Any]]:  # fmt: skip
    """Return the items on all pages of a list that AWS returns.

    `names`: three keys. The first is that of the items in an answer, the second that of the next page's token in an
    answer, the third that of the token in a request.
    """
    items, next_token, token = names
    found: list[Mapping[str, Any]] = []
    while True:
        answer = _asked(pace, method, about, action, **asked)
        found += answer.get(items, [])
        if not answer.get(next_token):
            return found
        asked[token] = answer[next_token]
