"""Topics, buses, who listens there, and roles, at moto's server; queues stay where they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest

from reprocessing.gateways import aws
from tests.contract.endpoints import moto_endpoint

REGION = "us-east-1"
ACCOUNT = "123456789012"


@dataclass(frozen=True)
class Listeners:
    """Clients of moto's server, to set things up."""

    sns: Any
    events: Any

    def topic(self, *listening: tuple[str, str]) -> tuple[str, list[str]]:
        """A new topic with these subscribers, each a protocol and an endpoint: its ARN and theirs."""
        topic = str(self.sns.create_topic(Name=f"t-{uuid4().hex[:12]}")["TopicArn"])
        made = [
            self.sns.subscribe(TopicArn=topic, Protocol=protocol, Endpoint=to, ReturnSubscriptionArn=True)
            for protocol, to in listening
        ]
        return topic, [one["SubscriptionArn"] for one in made]

    def bus(self, *targets: str) -> str:
        """A new bus, and one rule with these targets: its ARN."""
        bus, rule = f"b-{uuid4().hex[:12]}", f"r-{uuid4().hex[:12]}"
        arn = str(self.events.create_event_bus(Name=bus)["EventBusArn"])
        self.events.put_rule(Name=rule, EventBusName=bus, EventPattern=json.dumps({"source": ["shop"]}))
        named = [{"Id": str(number), "Arn": one} for number, one in enumerate(targets)]
        self.events.put_targets(Rule=rule, EventBusName=bus, Targets=named)
        return arn


@pytest.fixture(scope="module")
def listeners() -> Iterator[Listeners]:
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        for service in ("SNS", "EVENTBRIDGE", "STS"):
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", moto.url)
        aws.forget_clients()
        made: Any = boto3.session.Session(region_name=REGION).client
        yield Listeners(made("sns"), made("events"))
    aws.forget_clients()


def function(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
