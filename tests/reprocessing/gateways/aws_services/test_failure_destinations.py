"""Queues that functions, subscriptions and rules name for failed messages. SNS and EventBridge are moto's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from reprocessing.domain.dlqs.discovery import FailureSource, SourceKind
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.aws import forget_clients
from reprocessing.gateways.aws.request_pace import RequestPace
from reprocessing.gateways.aws_services.failure_destinations import (
    function_destinations,
    rule_destinations,
    subscription_destinations,
)
from tests.reprocessing.gateways.aws_stand_in import REGION, Aws
from tests.reprocessing.gateways.stand_ins import Asked, Said, lambda_error, standing_in

FUNCTION = f"arn:aws:lambda:{REGION}:123456789012:function:"
QUEUE = f"arn:aws:sqs:{REGION}:123456789012:"


@pytest.fixture
def pace() -> RequestPace:
    return RequestPace(lambda: 0.0, sleep=lambda _: None)


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Said]]:
    """Lambda as a stand-in: the answers by path."""
    answers: dict[str, Said] = {}

    def answer(asked: Asked) -> Said:
        return answers.get(asked.path.partition("?")[0] + asked.path.partition("?Marker=")[2], Said(body=b"{}"))

    with standing_in(answer) as lambda_:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", lambda_.url)
        forget_clients()
        yield answers
    forget_clients()


def said(content: object) -> Said:
    return Said(body=json.dumps(content).encode(), headers={"Content-Type": "application/json"})


def configs(name: str, *destinations: str) -> dict[str, Said]:
    found = [
        {"FunctionArn": f"{FUNCTION}{name}:$LATEST", "DestinationConfig": {"OnFailure": {"Destination": queue}}}
        for queue in destinations
    ]
    path = f"/2019-09-25/functions/{FUNCTION}{name}/event-invoke-config/list"
    return {path: said({"FunctionEventInvokeConfigs": found})}


def test_a_function_s_dlq_and_its_on_failure_destination_are_found_page_by_page(
    functions: dict[str, Said], pace: RequestPace
) -> None:
    ship = {"FunctionArn": f"{FUNCTION}ship", "DeadLetterConfig": {"TargetArn": f"{QUEUE}ship-dlq"}}
    topic = {"FunctionArn": f"{FUNCTION}bill", "DeadLetterConfig": {"TargetArn": f"arn:aws:sns:{REGION}:1:t"}}
    functions["/2015-03-31/functions"] = functions["/2015-03-31/functions/"] = said(
        {"Functions": [ship], "NextMarker": "two"}
    )
    functions["/2015-03-31/functionstwo"] = functions["/2015-03-31/functions/two"] = said({"Functions": [topic]})
    functions |= configs("ship") | configs("bill", f"{QUEUE}bill-failures")
    first = function_destinations(REGION, "", "", pace)
    assert first.sources == [FailureSource(f"{QUEUE}ship-dlq", f"{FUNCTION}ship", SourceKind.FUNCTION)]
    second = function_destinations(REGION, "", first.next_marker, pace)
    assert second.sources == [FailureSource(f"{QUEUE}bill-failures", f"{FUNCTION}bill", SourceKind.FUNCTION)]
    assert second.next_marker == ""


def test_a_function_that_was_deleted_meanwhile_is_left_out_and_a_refusal_names_the_right(
    functions: dict[str, Said], pace: RequestPace
) -> None:
    ship = {"FunctionArn": f"{FUNCTION}ship"}
    functions["/2015-03-31/functions"] = functions["/2015-03-31/functions/"] = said({"Functions": [ship]})
    path = next(iter(configs("ship")))
    functions[path] = lambda_error(404, "ResourceNotFoundException")
    assert function_destinations(REGION, "", "", pace).sources == []
    functions[path] = lambda_error(403, "AccessDeniedException")
    with pytest.raises(QueueUnreachable, match="Allow lambda:ListFunctionEventInvokeConfigs on it"):
        function_destinations(REGION, "", "", pace)


@pytest.mark.soak
def test_a_subscription_s_dlq_is_found(aws: Aws, pace: RequestPace) -> None:
    dlq, topic = aws.queue(), aws.topic()
    subscription = aws.subscribe(topic, aws.queue())
    aws.subscribe(topic, aws.queue())
    policy = json.dumps({"deadLetterTargetArn": dlq})
    aws.sns.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName="RedrivePolicy", AttributeValue=policy
    )
    found = subscription_destinations(REGION, "", "", pace).sources
    assert found == [FailureSource(dlq, subscription, SourceKind.SUBSCRIPTION)]


@pytest.mark.soak
def test_a_rule_s_target_with_a_dlq_is_found_with_its_rule(aws: Aws, pace: RequestPace) -> None:
    dlq, target = aws.queue(), aws.queue()
    rule = aws.rule(aws.bus(), {"source": ["shop"]}, {"Arn": target, "DeadLetterConfig": {"Arn": dlq}})
    found = rule_destinations(REGION, "", "", pace).sources
    assert found == [FailureSource(dlq, target, SourceKind.RULE, rule)]


def test_with_an_sqs_outside_aws_no_other_service_of_aws_is_asked(
    pace: RequestPace, afresh: pytest.MonkeyPatch
) -> None:
    for service in ("LAMBDA", "SNS", "EVENTBRIDGE"):
        afresh.delenv(f"AWS_ENDPOINT_URL_{service}", raising=False)
    forget_clients()
    for destinations in (function_destinations, subscription_destinations, rule_destinations):
        assert destinations(REGION, "", "", pace).sources == []
    assert pace.repeats == 0
