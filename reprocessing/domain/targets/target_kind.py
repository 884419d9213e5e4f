"""The kinds of targets. The kind decides by which protocol letters are sent (`pipeline.replay.send`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TargetKind(StrEnum):
    """The kind of a target."""

    SQS = "sqs"
    CELERY = "celery"
    HTTP = "http"
    LAMBDA = "lambda"
    TOPIC = "topic"
    BUS = "bus"

    @property
    def label(self) -> str:
        """Return the kind's name for users."""
        return _LABELS[self]


_LABELS: Final = {
    TargetKind.SQS: "SQS queue",
    TargetKind.CELERY: "SQS queue of Celery workers",
    TargetKind.HTTP: "HTTP endpoint",
    TargetKind.LAMBDA: "Lambda function",
    TargetKind.TOPIC: "SNS topic: all subscribers get the message again",
    TargetKind.BUS: "EventBridge bus: all rules get the message again",
}
#: Kinds of targets that are SQS queues.
QUEUE_KINDS: Final = (TargetKind.SQS, TargetKind.CELERY)
#: Kinds of targets that answer each letter separately, not in batches.
SYNCHRONOUS: Final = (TargetKind.HTTP, TargetKind.LAMBDA)
