"""A workbench for the pipeline: real queues in the local SQS, rows in Postgres, one turn at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import timedelta
from typing import Any

import boto3
from django.conf import settings

from reprocessing.conf import Conf
from reprocessing.models import DeadLetterQueue, Origin, Run, Target, lanes
from reprocessing.pipeline import gather, plan, promote, replay
from reprocessing.pipeline.gather import Gathered
from reprocessing.pipeline.replay import Report
from reprocessing.rate import Rates

#: No waiting for what SQS's counts or long polls would need on AWS.
BRISK = replaced(Conf(), long_poll=0, count_lag=timedelta(0), lease=timedelta(seconds=8))


@dataclass
class Workbench:
    """One dlq with one origin; `fifo` both."""

    fifo: bool = False
    conf: Conf = BRISK
    visibility: int = 30
    fields: dict[str, Any] = field(default_factory=dict)
    target_fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sqs = boto3.client("sqs")
        self.name = f"t-{uuid.uuid4().hex[:10]}"
        suffix = ".fifo" if self.fifo else ""
        self.dlq_url = self.queue(f"{self.name}-dlq{suffix}")
        self.origin_url = self.queue(f"{self.name}{suffix}")
        self.target = Target.objects.create(
            arn=self.arn(self.origin_url), url=self.origin_url, region="eu-west-1", fifo=self.fifo,
            visibility=self.visibility, **{"rate": None, **self.target_fields},
        )  # fmt: skip
        self.dlq = DeadLetterQueue.objects.create(
            name=self.name, url=self.dlq_url, arn=self.arn(self.dlq_url), region="eu-west-1", fifo=self.fifo,
            delete_when="captured" if self.fifo else "terminal",
            **{"quiet_for": 0, "backoff_base": 0, **self.fields},
        )  # fmt: skip
        self.origin = Origin.objects.create(dlq=self.dlq, arn=self.arn(self.origin_url), target=self.target)

    def queue(self, name: str) -> str:
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        return self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def arn(self, url: str) -> str:
        return self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    def judge_by_absence(self, **fields: object) -> None:
        """The target's letters are delivered when they do not come back to this dlq."""
        Target.objects.filter(pk=self.target.pk).update(
            **{"proof": "absence", "advance": "settled", "watched_by": self.dlq, **fields}
        )

    def bury(self, body: str, *, key: str | None = None, **attributes: str) -> str:
        """A message in the dlq; its id."""
        attributes = {**attributes, **({"key": key} if key else {})}
        rest = {"MessageGroupId": key or "g", "MessageDeduplicationId": uuid.uuid4().hex} if self.fifo else {}
        return self.sqs.send_message(
            QueueUrl=self.dlq_url, MessageBody=body, **rest,
            MessageAttributes={n: {"DataType": "String", "StringValue": v} for n, v in attributes.items()},
        )["MessageId"]  # fmt: skip

    def capture(self, seconds: float = 10) -> Gathered:
        return gather.letters(
            DeadLetterQueue.objects.get(pk=self.dlq.pk), conf=self.conf, dice=lambda: 0.0, seconds=seconds
        )

    def enlist(self, limit: int | None = None) -> Run:
        run = Run.objects.create(
            name=f"run-{uuid.uuid4().hex[:8]}",
            dlq=self.dlq,
            state="running",
            asked_by="a test",
            started_at=lanes.clock(),
        )
        plan.places(self.dlq)
        plan.enlist(self.dlq, run, limit=limit)
        return run

    def replay(self, seconds: float = 10, **options: Any) -> Report:
        turn = replay.Slice(
            owner=uuid.uuid4().hex, conf=self.conf, rates=Rates.at(settings.REDIS_URL), dice=lambda: 0.0, **options
        )
        return turn.run(seconds=seconds)

    def promote(self) -> int:
        return promote.letters(conf=self.conf)

    def delivered(self, url: str | None = None) -> list[dict[str, Any]]:
        """Everything that can be received from the origin, deleted there."""
        url = url or self.origin_url
        got: list[dict[str, Any]] = []
        while found := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
        ).get("Messages"):
            got += found
            for one in found:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return got

    def left(self, url: str | None = None) -> int:
        found = self.sqs.get_queue_attributes(QueueUrl=url or self.dlq_url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]) + int(found["ApproximateNumberOfMessagesNotVisible"])


Make = Callable[..., Workbench]
