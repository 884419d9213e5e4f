"""Topics, buses and buckets of moto's server, and queues that hear them. What moto does not do, its users here say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest

from reprocessing.gateways import aws
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import moto_endpoint

REGION = "us-east-1"


@dataclass(frozen=True)
class Aws:
    sns: Any
    events: Any
    s3: Any
    queues: Any

    def topic(self, *, fifo: bool = False) -> str:
        name = f"t-{uuid4().hex[:12]}{'.fifo' if fifo else ''}"
        attributes = {"FifoTopic": "true"} if fifo else {}
        return str(self.sns.create_topic(Name=name, Attributes=attributes)["TopicArn"])

    def queue(self, *, fifo: bool = False) -> str:
        name = f"q-{uuid4().hex[:12]}{'.fifo' if fifo else ''}"
        url = self.queues.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if fifo else {})["QueueUrl"]
        said = self.queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(said["Attributes"]["QueueArn"])

    def subscribe(self, topic: str, queue: str, *, raw: bool = True) -> str:
        attributes = {"RawMessageDelivery": "true"} if raw else {}
        made = self.sns.subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=queue, Attributes=attributes, ReturnSubscriptionArn=True
        )
        return str(made["SubscriptionArn"])

    def bus(self) -> str:
        return str(self.events.create_event_bus(Name=f"b-{uuid4().hex[:12]}")["EventBusArn"])

    def rule(self, bus: str, pattern: dict[str, Any], *targets: dict[str, Any], state: str = "ENABLED") -> str:
        name = f"r-{uuid4().hex[:12]}"
        made = self.events.put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps(pattern), State=state)
        named = [{"Id": str(number), **one} for number, one in enumerate(targets)]
        if named:
            self.events.put_targets(Rule=name, EventBusName=bus, Targets=named)
        return str(made["RuleArn"])

    def heard(self, queue: str) -> list[dict[str, Any]]:
        url = self.queues.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
        found: list[dict[str, Any]] = []
        while some := self.queues.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages"):
            found += some
        return found

    def address(self, queue: str) -> QueueAddress:
        return QueueAddress(self.queues.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"], REGION)


@contextmanager
def amazon() -> Iterator[Aws]:
    """Moto's server, and the package speaks to it for as long as the block runs."""
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        for service in ("SNS", "EVENTBRIDGE", "S3", "SQS"):
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", moto.url)
        aws.forget_clients()
        made: Any = boto3.session.Session(region_name=REGION).client
        yield Aws(made("sns"), made("events"), made("s3"), made("sqs"))
    aws.forget_clients()
