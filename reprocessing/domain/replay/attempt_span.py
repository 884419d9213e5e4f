"""Describe an attempt as an OpenTelemetry span: its name, its attributes and its result.

Names follow the semantic conventions for messaging (opentelemetry.io/docs/specs/semconv/messaging/messaging-spans);
names of this service begin with `redrive.`. A span has no ordering key, body or attribute of the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never
from urllib.parse import urlsplit

from reprocessing.domain.lifecycle import AttemptOutcome
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown

#: Names of the messaging systems, by the target's kind. The conventions define only the names of SQS and SNS.
_SYSTEMS: Final = {
    "sqs": "aws_sqs", "celery": "aws_sqs", "topic": "aws.sns", "bus": "aws.eventbridge", "lambda": "aws.lambda",
    "http": "http",
}  # fmt: skip
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_OTHER: Final = "_OTHER"  # OpenTelemetry's fallback value of error.type

SpanAttributes = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """How an attempt ended, for its trace span. `error`: the code of the failure; empty: the target accepted."""

    outcome: AttemptOutcome
    error: str = ""
    sent_as: str = ""  #: the id that the target gave the message

    @property
    def attributes(self) -> dict[str, str]:
        """Return the span attributes that describe the result of the attempt."""
        found = {"error.type": self.error, "messaging.message.id": self.sent_as}
        return {"redrive.outcome": self.outcome.value, **{name: text for name, text in found.items() if text}}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """The facts about an attempt that are written to its trace span.

    Attributes:
        kind: the target's kind.
        target: the target's ARN or URL.
        key_queue: the id of the key queue, in place of the ordering key: the key may be personal data.
        number: the attempt's number, counted for each message.
        run: the run's name; empty: none.
    """

    kind: str
    target: str = field(repr=False)
    dlq: str
    redrive_id: str
    message_id: str
    key_queue: int
    number: int
    run: str = ""

    @property
    def name(self) -> str:
        """Return the span's name, such as "send orders"."""
        return f"send {self._destination}"

    @property
    def attributes(self) -> SpanAttributes:
        """Return the span attributes that are known before the attempt ends."""
        run = {"redrive.run": self.run} if self.run else {}
        return {
            "messaging.system": _SYSTEMS.get(self.kind, self.kind),
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": self._destination,
            "redrive.id": self.redrive_id,
            "redrive.message_id": self.message_id,
            "redrive.dlq": self.dlq,
            "redrive.key_queue_id": self.key_queue,
            "redrive.attempt": self.number,
            **run,
        }

    @property
    def _destination(self) -> str:
        """Return the target's name in AWS; of a URL only the host, because its path may have a secret."""
        return urlsplit(self.target).hostname or "" if self.kind == "http" else resource_name(self.target)


def result_of(outcome: Outcome | None) -> SpanResult:
    """Return the result to write to an attempt's span. `outcome`: how the send ended; None: not known."""
    match outcome:
        case Taken(sent_as):
            return SpanResult(AttemptOutcome.ACCEPTED, sent_as=sent_as or "")
        case Refused(code):
            return SpanResult(AttemptOutcome.REFUSED, code if _CODE.fullmatch(code) else _OTHER)
        case NotSent(unreachable=unreachable):
            return SpanResult(AttemptOutcome.NOT_SENT, "unreachable" if unreachable else "not_sent")
        case Unknown() | None:
            return SpanResult(AttemptOutcome.UNKNOWN, "unknown")
        case _ as never:
            assert_never(never)
