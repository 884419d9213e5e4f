"""What a dead letter looks like that did not die in an SQS queue: who could not take it, and what that one was given.

Recognised from attributes and bodies as AWS documents them, never from a guess: what looks like two of them, or like
one of them but for a detail, is none. Then a person has to say where it goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_span import spans, text_of
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources import sns_notification

_LONGEST_CODE: Final = 100
_LONGEST_MESSAGE: Final = 200
_ACCOUNT: Final = r"[a-z0-9-]+:[0-9]{12}"
_FUNCTION: Final = re.compile(rf"arn:aws[a-z-]*:lambda:{_ACCOUNT}:function:[A-Za-z0-9_-]{{1,140}}(?::[A-Za-z0-9$_-]+)?")
_RULE: Final = re.compile(rf"arn:aws[a-z-]*:events:{_ACCOUNT}:rule/[A-Za-z0-9_./-]{{1,321}}")
_SCHEDULE: Final = re.compile(rf"arn:aws[a-z-]*:scheduler:{_ACCOUNT}:schedule/[A-Za-z0-9_./-]{{1,129}}")
_ARN: Final = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:[0-9]{0,12}:[\x21-\x7e]{1,1024}")
_SEND_MESSAGE: Final = re.compile(r"arn:(aws[a-z-]*):scheduler:::aws-sdk:sqs:sendMessage")
_QUEUE: Final = re.compile(
    r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})/([A-Za-z0-9_-]{1,80}(?:\.fifo)?)"
)
_STATUS: Final = re.compile(r"[0-9]{3}")
_WORD: Final = re.compile(r"[A-Za-z]{1,64}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:]{0,99}")
#: What AWS adds to a letter that did not die in a queue; whoever failed to take it was not given these.
OF_ITS_DEATH: Final = frozenset({
    "RequestID", "ErrorCode", "ErrorMessage", "RULE_ARN", "TARGET_ARN", "SCHEDULE_ARN", "EXECUTION_ID", "ERROR_CODE",
    "ERROR_MESSAGE", "EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS",
    "IS_PAYLOAD_TRUNCATED", "SCHEDULED_TIME",
})  # fmt: skip


class ShapeKind(StrEnum):
    """Who tried to deliver it."""

    LAMBDA = "lambda"  #: the queue of a function's asynchronous events: its dead-letter queue
    LAMBDA_DESTINATION = "lambda_destination"  #: its destination on failure
    SNS = "sns"  #: a subscription of a topic
    EVENTBRIDGE = "eventbridge"  #: a target of a rule
    SCHEDULER = "scheduler"  #: the target of a schedule


@dataclass(frozen=True, slots=True)
class Shape:
    """What a letter says of its death.

    Attributes:
        failed: the ARN of what did not take it: function, subscription or target; empty where it does not say.
        code: why, in a word.
        message: why, in at most 200 characters. It may quote the letter: for those who may read it, never for a log.
        through: the ARN of the topic, rule or schedule that it came through; empty where there is none.
        truncated: AWS says that the body is not all of it.
    """

    kind: ShapeKind
    failed: str
    code: str
    message: str = field(repr=False)
    through: str = ""
    truncated: bool = False


def recognise(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> Shape | None:
    """The shape of a letter; None where it died in an SQS queue, is none of AWS's, or could be of two kinds.

    Takes time linear in the length of the body, and raises nothing.
    """
    if system.get("DeadLetterQueueSourceArn"):
        return None
    texts = {name: one.value for name, one in attributes.items() if one.type == "String" and isinstance(one.value, str)}
    status = attributes.get("ErrorCode")
    number = status.value if status is not None and status.type == "Number" and isinstance(status.value, str) else ""
    found = (
        _from_lambda(texts, number),
        _from_a_destination(body),
        _from_sns(body, texts),
        _from_eventbridge(texts),
        _from_scheduler(body, texts),
    )
    shapes = [one for one in found if one is not None]
    return shapes[0] if len(shapes) == 1 else None


def parcel(shape: Shape, body: bytes, kind: str) -> bytes | Unreadable:
    """What the one that failed had been given, byte for byte, or why that cannot be told.

    Args:
        shape: what `recognise` said of the letter.
        body: the letter's.
        kind: of the target that it goes to: "lambda" gets a notification as the event that SNS makes of it; others get
            the notification itself, an HTTP endpoint with `notification.headers`.
    """
    if shape.truncated:
        return Unreadable("AWS cut it short when it died")
    match shape.kind:
        case ShapeKind.LAMBDA | ShapeKind.EVENTBRIDGE:
            return body
        case ShapeKind.LAMBDA_DESTINATION:
            found = spans(body)
            return found if isinstance(found, Unreadable) else found["requestPayload"]
        case ShapeKind.SNS:
            read = sns_notification.read(body)
            if isinstance(read, Unreadable) or kind != "lambda":
                return read if isinstance(read, Unreadable) else body
            return sns_notification.event(read)
        case ShapeKind.SCHEDULER:
            return _sent_by_scheduler(body)
        case _ as never:
            assert_never(never)


def _from_lambda(texts: Mapping[str, str], status: str) -> Shape | None:
    """The body is the event; RequestID, ErrorCode (the HTTP status, a number) and ErrorMessage are attributes.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
    """
    if not texts.get("RequestID") or "ErrorMessage" not in texts or not _STATUS.fullmatch(status):
        return None
    return Shape(ShapeKind.LAMBDA, "", status, _short(texts["ErrorMessage"]))


def _from_a_destination(body: bytes) -> Shape | None:
    """An invocation record, version 1.0; the event is its requestPayload. One of a success is no dead letter.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-async-destinations
    """
    if b'"requestPayload"' not in body:
        return None
    record = spans(body)
    if isinstance(record, Unreadable) or text_of(record.get("version")) != "1.0" or "requestPayload" not in record:
        return None
    context = spans(record.get("requestContext", b""))
    if isinstance(context, Unreadable) or not text_of(context.get("requestId")):
        return None
    function, condition = text_of(context.get("functionArn")), text_of(context.get("condition"))
    if not (function and _FUNCTION.fullmatch(function) and condition and _WORD.fullmatch(condition)):
        return None
    if condition == "Success":
        return None
    kind = ShapeKind.LAMBDA_DESTINATION
    return Shape(kind, function.removesuffix(":$LATEST"), condition, _type_of_error(record.get("responsePayload")))


def _from_sns(body: bytes, texts: Mapping[str, str]) -> Shape | None:
    """The body is the notification as the subscriber would have had it.

    https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html says that messages are moved, and nothing of
    their form. A recording of AWS from 2022 shows the notification without any attribute; others say that SNS adds
    ErrorCode and ErrorMessage, so these are read and not asked for. Raw delivery leaves nothing of SNS in a letter:
    such a one is not recognised.
    """
    if b'"Notification"' not in body:
        return None
    read = sns_notification.read(body)
    if isinstance(read, Unreadable):
        return None
    code, message = texts.get("ErrorCode", "")[:_LONGEST_CODE], _short(texts.get("ErrorMessage", ""))
    return Shape(ShapeKind.SNS, read.subscription, code, message, through=read.topic)


def _from_eventbridge(texts: Mapping[str, str]) -> Shape | None:
    """The body is the event; why, and of which rule and target, is in attributes.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html. The page does not say so, and users do:
    the event is the one that matched, before the target's own input transformation.
    """
    rule, target, code = texts.get("RULE_ARN", ""), texts.get("TARGET_ARN", ""), texts.get("ERROR_CODE", "")
    if not (_RULE.fullmatch(rule) and _ARN.fullmatch(target) and code) or "SCHEDULE_ARN" in texts:
        return None
    message = _short(texts.get("ERROR_MESSAGE", ""))
    return Shape(ShapeKind.EVENTBRIDGE, target, code[:_LONGEST_CODE], message, through=rule)


def _from_scheduler(body: bytes, texts: Mapping[str, str]) -> Shape | None:
    """The body is the request of the API that the schedule called, which TARGET_ARN names.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html. Of requests the page shows
    that of SQS's SendMessage alone: its queue is what failed. Of any other API what failed is TARGET_ARN.
    """
    schedule, target, code = texts.get("SCHEDULE_ARN", ""), texts.get("TARGET_ARN", ""), texts.get("ERROR_CODE", "")
    if not (_SCHEDULE.fullmatch(schedule) and _ARN.fullmatch(target) and code) or "RULE_ARN" in texts:
        return None
    return Shape(
        ShapeKind.SCHEDULER,
        _queue_of(target, body) or target,
        code[:_LONGEST_CODE],
        _short(texts.get("ERROR_MESSAGE", "")),
        through=schedule,
        truncated=texts.get("IS_PAYLOAD_TRUNCATED", "false") != "false",
    )


def _queue_of(target: str, body: bytes) -> str | None:
    api, request = _SEND_MESSAGE.fullmatch(target), spans(body)
    if api is None or isinstance(request, Unreadable):
        return None
    queue = _QUEUE.fullmatch(text_of(request.get("QueueUrl")) or "")
    return f"arn:{api[1]}:sqs:{queue[1]}:{queue[2]}:{queue[3]}" if queue else None


def _sent_by_scheduler(body: bytes) -> bytes | Unreadable:
    request = spans(body)
    if isinstance(request, Unreadable):
        return request
    message = text_of(request.get("MessageBody"))
    if message is None or request.keys() != {"MessageBody", "QueueUrl"}:
        return Unreadable("it is a schedule's request, and not one that only sends a message to a queue")
    return message.encode()


def _type_of_error(payload: bytes | None) -> str:
    """The name of a function's error; its message is left out, since that may quote what the function was given."""
    answer = spans(payload or b"")
    name = None if isinstance(answer, Unreadable) else text_of(answer.get("errorType"))
    return name if name and _NAME.fullmatch(name) else ""


def _short(text: str) -> str:
    """The beginning of its first line."""
    return text.strip().partition("\n")[0][:_LONGEST_MESSAGE]
