"""Run the shop of an incident: its queues, events and consumer. At the end, let the judge check the redrive."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import boto3
from botocore.config import Config

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.judge import Experiment, Judgement, ServiceRecords, judge
from redrive_service.sandbox.servers.process import PROJECT, RunningServer, Server
from redrive_service.sandbox.shop.calls import calls_since, next_call_number, plan_faults
from redrive_service.sandbox.shop.consumer import BROKEN, MENDED, OUT_OF_ORDER, VISIBILITY
from redrive_service.sandbox.shop.events import LETTERS_FOR_SPOILT, ShopEvent, make_events
from redrive_service.sandbox.stopping import raise_if_stopped

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

NAME = "shop-webhooks"
RECEIVES = 2  # receives of a message before SQS dead-letters it
_DEAD_WITHIN = 60.0  # max seconds until all messages are in the DLQ; 2,000 take about 5
_TEN = 10  # max messages in a batch of SQS
_PAUSE = 0.1  # seconds between two checks


class MessagesDidNotReachDlq(SandboxError):
    """The shop's messages did not reach the dead-letter queue in the time that `await_dead` allows."""


class Shop:
    """The shop of one incident. Use it in a `with` block: `break_down`, `publish`, `await_dead`, `mend`, `judged`.

    At the start of the block, messages of an earlier incident are purged from the queues. If the queues were purged
    within the last minute, the start waits until SQS allows a new purge.

    Attributes:
        source, dlq: the names of the shop's source queue and of its dead-letter queue.
        source_url, dlq_url: the URLs of the two queues.
        events: the events to publish.
        log: the path of the consumer's log.
        shows_brakes: whether there are enough messages to show the waves of a run, and a rule for the spoilt account.
    """

    def __init__(
        self, folder: Path, *, environment: Mapping[str, str], letters: int, seed: int, name: str = NAME
    ) -> None:
        self.source, self.dlq = name, f"{name}-dlq"
        self._endpoint = environment["AWS_ENDPOINT_URL_SQS"]
        self._environment = environment
        self._exit = ExitStack()
        self._mode = folder / "shop-mode"
        self.log = folder / "shop-consumer.jsonl"
        self._output = folder / "shop-consumer.log"
        self.shows_brakes = letters >= LETTERS_FOR_SPOILT
        self.events = make_events(letters, Random(seed))  # noqa: S311  # demo data, no secret

    def __enter__(self) -> Self:
        with ExitStack() as unwinding:
            self._client = _client(self._endpoint, self._environment)
            unwinding.callback(self._client.close)
            self.log.unlink(missing_ok=True)
            self._open_queues()
            self._since = next_call_number(self._endpoint)
            self._exit = unwinding.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def publish(self) -> None:
        """Send every event to the shop's queue, ten per call, in order. Raises SandboxError if SQS refuses an event."""
        for first in range(0, len(self.events), _TEN):
            batch = self.events[first : first + _TEN]
            answer = self._client.send_message_batch(
                QueueUrl=self.source_url, Entries=[_entry(number, event) for number, event in enumerate(batch)]
            )
            if answer.get("Failed"):
                raise SandboxError(f"The local SQS did not take the shop's events: {answer['Failed'][0]}")
            raise_if_stopped()

    def break_down(self) -> RunningServer:
        """Start the consumer in its broken state, in which all messages of the shop's queue go to the DLQ."""
        self._mode.write_text(BROKEN)
        module = "redrive_service.sandbox.shop.consumer"
        command = [sys.executable, "-m", module, self.source_url, str(self.log), str(self._mode)]
        environment = {**os.environ, **self._environment, "PYTHONPATH": str(PROJECT)}
        consumer = RunningServer(
            Server(name="The shop's consumer", command=command, log=self._output, environment=environment)
        )
        self._exit.callback(consumer.stop)
        consumer.await_ready(lambda: "consuming" in consumer.log_since_start())
        return consumer

    def mend(self, *, handles: int | None = None) -> None:
        """Repair the consumer. If `handles` is given, it breaks again after this total number of handled messages."""
        self._mode.write_text(MENDED if handles is None else f"{MENDED} {handles}")

    def is_broken(self) -> bool:
        """Return whether the consumer fails every message."""
        return self._mode.read_text() == BROKEN

    def deliver_twice(self) -> None:
        """Let the next receive from the DLQ return messages without hiding them, so that they are received twice."""
        plan_faults(self._endpoint, {"kind": "duplicate", "queue": self.dlq, "times": 1})

    def dead(self) -> int:
        """Return how many messages are in the DLQ, visible or in flight."""
        return self._count(self.dlq_url)

    def await_dead(self, *, within: float = _DEAD_WITHIN) -> None:
        """Return when every message is in the DLQ.

        Raises:
            MessagesDidNotReachDlq: a message is missing after `within` seconds.
            Stopped: the user stopped the sandbox meanwhile.
        """
        deadline = time.monotonic() + within
        while (dead := self.dead()) < len(self.events):
            raise_if_stopped()
            if time.monotonic() > deadline:
                raise MessagesDidNotReachDlq(
                    f"{dead} of {len(self.events)} messages are in {self.dlq} after {within:g} s. "
                    f"The consumer says why: {self._output} and {self.log}."
                )
            time.sleep(_PAUSE)

    def consumed(self) -> Iterator[dict[str, Any]]:
        """Yield each line of the consumer's log, read from JSON. An incomplete last line is left out."""
        if self.log.exists():
            with self.log.open("rb") as lines:
                yield from (json.loads(line) for line in lines if line.endswith(b"\n"))

    def calls(self) -> Iterator[dict[str, Any]]:
        """Yield every call of the local SQS since this shop opened its queues, from the call log."""
        return calls_since(self._endpoint, self._since)

    def experiment(self, *, max_attempts: int, rate: float, burst: float, cooldown: float) -> Experiment:
        """Return the description of this incident for the judge, with these limits and a first wave of one message."""
        return Experiment(
            sources=frozenset({self.source}),
            dlqs=frozenset({self.dlq}),
            identity="event_id",
            ordering="account",
            sequence="sequence",
            max_attempts=max_attempts,
            outages=self._outages(),
            rate=rate,
            burst=burst,
            cooldown=cooldown,
            first_wave=1,
        )

    def _outages(self) -> tuple[tuple[float, float], ...]:
        """Return, from the consumer's log, the period in which it failed every redriven message, or an empty tuple.

        The period begins at the last success, not at the first failure. If a single message failed just before the
        outage, the service counts this failure as a part of the outage.
        """
        redriven = [line for line in self.consumed() if line["redrive"]]
        failed = [line for line in redriven if line["why"] == OUT_OF_ORDER]
        if not failed:
            return ()
        well_until = [
            line["ended"] for line in redriven if line["outcome"] == "ok" and line["ended"] <= failed[0]["started"]
        ]
        return ((max(well_until, default=failed[0]["started"]), failed[-1]["ended"]),)

    def judged(self, experiment: Experiment, records: ServiceRecords) -> Judgement:
        """Let the judge check all sends since this shop opened its queues, and return the result."""
        return judge(experiment, self.calls(), self.consumed(), records)

    def _open_queues(self) -> None:
        self.dlq_url = self._queue(self.dlq, {"MessageRetentionPeriod": f"{14 * 86_400}"})  # SQS's max retention
        arn = self._client.get_queue_attributes(QueueUrl=self.dlq_url, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": RECEIVES}
        attributes = {"VisibilityTimeout": f"{VISIBILITY:.0f}", "RedrivePolicy": json.dumps(policy)}
        self.source_url = self._queue(self.source, attributes)

    def _queue(self, name: str, attributes: dict[Any, str]) -> str:
        """Create a queue or, if it exists, purge it. Return its URL."""
        url = self._client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        while not self._is_purged(url):
            raise_if_stopped()
            time.sleep(_PAUSE)
        return url

    def _is_purged(self, url: str) -> bool:
        """Purge the queue. Return whether SQS accepted that: SQS allows one purge per minute."""
        try:
            self._client.purge_queue(QueueUrl=url)
        except self._client.exceptions.PurgeQueueInProgress:
            return False
        return True

    def _count(self, url: str) -> int:
        answer = self._client.get_queue_attributes(
            QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        )
        return sum(int(number) for number in answer["Attributes"].values())


def _client(endpoint: str, environment: Mapping[str, str]) -> SQSClient:
    return boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name=environment["AWS_DEFAULT_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(connect_timeout=3, read_timeout=10),
    )


def _entry(number: int, event: ShopEvent) -> SendMessageBatchRequestEntryTypeDef:
    return {
        "Id": str(number),
        "MessageBody": event.body(),
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in event.attributes().items()
        },
    }
