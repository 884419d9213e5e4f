"""A channel of ours on a bench: no network, no clock; what it plans and calls is written down."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore.exceptions import ClientError
from kombu import Connection

from redrive_service.broker.channel import FAILURES, Channel
from redrive_service.broker.version import KombuValue

QUEUE = "redrive-control"
URL = f"https://sqs.us-east-1.amazonaws.com/000000000000/{QUEUE}"


@dataclass(eq=False)
class Timer:
    delay: float
    act: KombuValue
    arguments: tuple[KombuValue, ...]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Loop:
    """An event loop on which nothing happens by itself."""

    timers: list[Timer] = field(default_factory=list)

    def call_soon(self, act: KombuValue, *arguments: KombuValue) -> None:
        self.call_later(0.0, act, *arguments)

    def call_later(self, delay: float, act: KombuValue, *arguments: KombuValue) -> Timer:
        self.timers.append(Timer(delay, act, arguments))
        return self.timers[-1]

    def planned(self) -> list[tuple[float, str]]:
        return [(timer.delay, timer.act.__name__) for timer in self.timers if not timer.cancelled]

    def happen(self, name: str) -> None:
        timer = next(timer for timer in self.timers if timer.act.__name__ == name and not timer.cancelled)
        self.timers.remove(timer)
        timer.act(*timer.arguments)


@dataclass
class Sqs:
    """Answers every call with an error, or with nothing."""

    error: Exception | None = None
    calls: list[tuple[str, dict[str, KombuValue]]] = field(default_factory=list)

    def __getattr__(self, action: str) -> KombuValue:
        def call(**arguments: KombuValue) -> dict[str, KombuValue]:
            self.calls.append((action, arguments))
            if self.error:
                raise self.error
            return {}

        return call


@dataclass
class Wire:
    """Takes receives, and answers when it is told to."""

    error: Exception | None = None
    waiting: list[KombuValue] = field(default_factory=list)

    def receive_message(self, *_: KombuValue, callback: KombuValue, **__: KombuValue) -> None:
        if self.error:
            raise self.error
        self.waiting.append(callback)

    def answer(self, outcome: object, *, number: int = 0) -> None:
        self.waiting.pop(number)(outcome)


@dataclass
class Bench:
    channel: Channel
    loop: Loop
    sqs: Sqs
    wire: Wire
    received: list[KombuValue] = field(default_factory=list)

    def consume(self, callback: KombuValue = None) -> None:
        """Begin to consume; the first poll waits for its answer."""
        self.channel.basic_consume(QUEUE, False, callback or self.received.append, "consumer")  # noqa: FBT003  # kombu's signature
        self.loop.happen("_schedule_queue")

    def free_slots(self) -> int:
        return self.channel.qos.can_consume_max_estimate()


@contextmanager
def bench() -> Iterator[Bench]:
    """A channel that may hold three messages."""
    options = {"region": "us-east-1", "predefined_queues": {QUEUE: {"url": URL}}, "wait_time_seconds": 20}
    connection = Connection(
        "sqs://",
        transport="redrive_service.broker.transport:Transport",
        transport_options={**options, "polling_interval": 0.1},
    )
    FAILURES.clear()
    with connection:
        channel: KombuValue = connection.default_channel
        loop, sqs, wire = Loop(), Sqs(), Wire()
        channel.hub = loop
        channel.sqs = lambda queue=None: sqs
        channel.asynsqs = lambda queue=None: wire
        channel._receiving_client = lambda queue: sqs
        channel.qos.prefetch_count = 3
        yield Bench(channel=channel, loop=loop, sqs=sqs, wire=wire)
        sqs.error = None


def message(number: int, *, routing_key: str = QUEUE, body: str | None = None) -> dict[str, KombuValue]:
    envelope = {
        "body": base64.b64encode(b"[[], {}, {}]").decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": "any", "id": str(number)},
        "properties": {"delivery_info": {"exchange": "", "routing_key": routing_key}, "body_encoding": "base64"},
    }
    return {
        "MessageId": f"message-{number}",
        "ReceiptHandle": f"receipt-{number}",
        "Body": json.dumps(envelope) if body is None else body,
        "Attributes": {"ApproximateReceiveCount": "1"},
    }


def refusal(code: str, status: int = 403) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "a secret"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # botocore fills in the rest
        "Any",
    )
