"""The kinds of targets, each with the letters that it can be given and with what has arrived at it."""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any, ClassVar

import pytest

from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.gateways.aws import forget_clients
from reprocessing.models import Source, Target
from tests import envelopes
from tests.reprocessing.gateways.aws_stand_in import REGION, Aws
from tests.reprocessing.gateways.stand_ins import Asked
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Workbench
from tests.reprocessing.pipeline.targets import wire
from tests.reprocessing.pipeline.targets.gateway import FUNCTIONS, HOOKS, Gateway, members
from tests.reprocessing.pipeline.targets.wire import Sent, Typed

IN_GROUPS = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}


@dataclass
class World:
    gateway: Gateway
    aws: Aws
    nowhere: str  #: a URL at which nobody listens


class Kind(ABC):
    """One target of a kind, at the end of a workbench's dlq."""

    fifo: ClassVar[bool] = False
    services: ClassVar[tuple[str, ...]] = ()  #: where its client goes, as the environment names it

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = uuid.uuid4().hex[:12]
        self.letters: dict[str, str] = {}

    def bench(self, **fields: Any) -> Workbench:  # noqa: ANN401  those of the dlq's row
        """A new workbench whose one target is this."""
        policy = IN_GROUPS if self.fifo else KEYED
        hosts = allow_list([one.removeprefix("http://") for one in (self.world.gateway.url, self.world.nowhere)])
        assert isinstance(hosts, AllowList)
        with pytest.MonkeyPatch.context() as patch:  # what the test itself asks of SQS need not pass the gateway
            patch.setenv("AWS_ENDPOINT_URL_SQS", self.world.gateway.sqs)
            self.made = Workbench(
                fifo=self.fifo, conf=replaced(BRISK, outbound_hosts=hosts),
                fields={"backoff_base": 60, "backoff_jitter": "none", **policy, **fields},
            )  # fmt: skip
        if row := self.row():
            Target.objects.filter(pk=self.made.target.pk).update(**row)
            Source.objects.filter(pk=self.made.source.pk).update(arn=row.get("arn", self.made.source.arn))
            self.made.target.refresh_from_db()
        return self.made

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody listens where it is."""
        with pytest.MonkeyPatch.context() as patch:
            for service in self.services:
                patch.setenv(f"AWS_ENDPOINT_URL_{service}", self.world.nowhere)
            forget_clients()
            yield
        forget_clients()

    def letter(self, text: str) -> str:
        """The body of a letter for it, in which this stands; the same every time."""
        return self.letters.setdefault(text, self.written(text))

    def written(self, text: str) -> str:
        """A body of the form that it takes."""
        return text

    def parcel(self, body: str) -> str:
        """What is to arrive of a letter's body."""
        return body

    def row(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def sent(self) -> list[list[Sent]]:
        """What was put on the wire, request by request."""

    @abstractmethod
    def heard(self) -> list[Sent]:
        """What it has got; each once."""


class Queue(Kind):
    services = ("SQS",)

    def sent(self) -> list[list[Sent]]:
        requests = [json.loads(request.body) for request in self.world.gateway.asked if b'"Entries"' in request.body]
        return [
            [wire.entry(entry) for entry in request["Entries"]]
            for request in requests
            if request.get("QueueUrl") == self.made.source_url
        ]

    def heard(self) -> list[Sent]:
        return [wire.received(message) for message in self.made.delivered()]


class FifoQueue(Queue):
    fifo = True


class Workers(Queue):
    def row(self) -> dict[str, Any]:
        return {"kind": "celery"}

    def written(self, text: str) -> str:
        document = envelopes.opened(envelopes.task("shop.charge", text, queue=self.name))
        return json.dumps(document, ensure_ascii=False, indent=1)


class Endpoint(Kind):
    def row(self) -> dict[str, Any]:
        url = f"{self.world.gateway.url}{HOOKS}{self.name}"
        return {"kind": "http", "arn": url, "url": url}

    @contextmanager
    def away(self) -> Iterator[None]:
        Target.objects.filter(pk=self.made.target.pk).update(url=f"{self.world.nowhere}{HOOKS}{self.name}")
        yield

    def sent(self) -> list[list[Sent]]:
        return [[wire.post(request)] for request in self.world.gateway.asked if request.path == f"{HOOKS}{self.name}"]

    def heard(self) -> list[Sent]:
        return [wire.post(one) for one in self.world.gateway.taken if one.path == f"{HOOKS}{self.name}"]


class Function(Kind):
    services = ("LAMBDA",)

    @property
    def arn(self) -> str:
        return f"arn:aws:lambda:eu-west-1:111122223333:function:{self.name}"

    def row(self) -> dict[str, Any]:
        return {"kind": "lambda", "arn": self.arn, "url": "", "region": "eu-west-1"}

    def written(self, text: str) -> str:
        return json.dumps({"text": text}, ensure_ascii=False, indent=2)

    def sent(self) -> list[list[Sent]]:
        return [[wire.post(request)] for request in self.world.gateway.asked if self._is_mine(request)]

    def heard(self) -> list[Sent]:
        return [wire.post(one) for one in self.world.gateway.taken if self._is_mine(one)]

    def _is_mine(self, letter: Asked) -> bool:
        return letter.path == f"{FUNCTIONS}{self.arn}/invocations"


class Topic(Kind):
    """An SNS topic, with a queue that is subscribed to it."""

    services = ("SNS",)

    def row(self) -> dict[str, Any]:
        self.arn, self.subscriber = self.world.aws.topic(), self.world.aws.queue()
        self.world.aws.subscribe(self.arn, self.subscriber)
        return {"kind": "topic", "arn": self.arn, "url": "", "region": REGION, "confirmed_fanout": 1}

    def sent(self) -> list[list[Sent]]:
        return [
            [wire.member(entry) for entry in members(request)]
            for request in self.world.gateway.asked if self.name_on_the_wire in request.body.decode()
        ]  # fmt: skip

    def heard(self) -> list[Sent]:
        return [wire.received(message) for message in self.world.aws.heard(self.subscriber)]

    @property
    def name_on_the_wire(self) -> str:
        return self.arn.rpartition(":")[2]


class Bus(Kind):
    """An EventBridge bus.

    What moto took counts as heard: to hand events on, it wants a package that nothing else needs.
    """

    services = ("EVENTBRIDGE",)

    def row(self) -> dict[str, Any]:
        self.arn = self.world.aws.bus()
        return {"kind": "bus", "arn": self.arn, "url": "", "region": REGION, "confirmed_fanout": 1}

    def written(self, text: str) -> str:
        detail = json.dumps({"text": text}, ensure_ascii=False, indent=2)
        return f'{{"version":"0","id":"1","detail-type":"paid","source":"shop","detail": {detail} , "resources":[]}}'

    def parcel(self, body: str) -> str:
        return body.partition('"detail": ')[2].rpartition(' , "resources"')[0]

    def sent(self) -> list[list[Sent]]:
        return self._entries(self.world.gateway.asked)

    def heard(self) -> list[Sent]:
        return [one for request in self._entries(self.world.gateway.taken) for one in request]

    def _entries(self, asked: Sequence[Asked]) -> list[list[Sent]]:
        requests = [json.loads(request.body) for request in asked if self.arn.encode() in request.body]
        return [[Sent(entry["Detail"]) for entry in request["Entries"]] for request in requests]


KINDS: dict[str, type[Kind]] = {
    "sqs": Queue,
    "sqs-fifo": FifoQueue,
    "celery": Workers,
    "http": Endpoint,
    "lambda": Function,
    "topic": Topic,
    "bus": Bus,
}


def real_sqs() -> str:
    """The URL of the local SQS, where nothing stands before it."""
    return os.environ["AWS_ENDPOINT_URL_SQS"]


def bury(bench: Workbench, body: str, typed: Typed, *, group: str | None = None, trace: str | None = None) -> str:
    """A message in the dlq; its id."""
    rest: dict[str, Any] = {"MessageGroupId": group} if group else {}
    if bench.fifo:
        rest["MessageDeduplicationId"] = uuid.uuid4().hex
    if trace:
        rest["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    attributes = {
        name: {"DataType": kind, "BinaryValue" if isinstance(held, bytes) else "StringValue": held}
        for name, (kind, held) in typed.items()
    }
    sent = bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=attributes, **rest)
    return str(sent["MessageId"])


def typed(attributes: Attributes) -> Typed:
    return {name: (one.type, one.value) for name, one in attributes.items()}
