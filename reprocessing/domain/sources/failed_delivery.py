"""Recognise messages that another AWS service (Lambda, SNS, EventBridge, Scheduler) put into a DLQ.

The input that the consumer was given is recovered from the message. AWS documents the attributes and bodies of these
messages. A message that fits two services, or differs in a detail, is not recognised: a person must name its target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_span import json_string_text, member_bytes
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
#: Attributes that AWS adds after delivery has failed. The consumer did not receive them.
FAILURE_ATTRIBUTES: Final = frozenset({
    "RequestID", "ErrorCode", "ErrorMessage", "RULE_ARN", "TARGET_ARN", "SCHEDULE_ARN", "EXECUTION_ID", "ERROR_CODE",
    "ERROR_MESSAGE", "EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS",
    "IS_PAYLOAD_TRUNCATED", "SCHEDULED_TIME",
})  # fmt: skip


class FailedDeliveryKind(StrEnum):
    """The AWS service that tried to deliver the message."""

    LAMBDA = "lambda"  #: a function's dead-letter queue
    LAMBDA_DESTINATION = "lambda_destination"  #: a function's destination on failure
    SNS = "sns"  #: a subscription's dead-letter queue
    EVENTBRIDGE = "eventbridge"  #: a rule's target
    SCHEDULER = "scheduler"  #: a schedule's target


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """Where and why an AWS service failed to deliver a message.

    Attributes:
        failed: the ARN of the function, subscription or target; empty if it is not known.
        code: the error code.
        message: the error text, at most 200 characters. It may quote the letter, so it must not be logged.
        through: the ARN of the topic, rule or schedule; empty: none.
        truncated: whether AWS says that the body is incomplete.
    """

    kind: FailedDeliveryKind
    failed: str
    code: str
    message: str = field(repr=False)
    through: str = ""
    truncated: bool = False


def recognise(body: bytes, attributes: Attributes, system: Mapping[str, str]) -> FailedDelivery | None:
    """Return where and why an AWS service failed to deliver the message. Never raises.

    Return None if SQS itself moved the message from a source queue, or if no service is recognised. `system`: the
    attributes that SQS adds to each message.
    """
    if system.get("DeadLetterQueueSourceArn"):
        return None
    texts = {
        name: attribute.value
        for name, attribute in attributes.items()
        if attribute.type == "String" and isinstance(attribute.value, str)
    }
    status = attributes.get("ErrorCode")
    number = status.value if status is not None and status.type == "Number" and isinstance(status.value, str) else ""
    found = (
        _from_lambda(texts, number), _from_a_destination(body), _from_sns(body, texts), _from_eventbridge(texts),
        _from_scheduler(body, texts),
    )  # fmt: skip
    shapes = [shape for shape in found if shape is not None]
    return shapes[0] if len(shapes) == 1 else None


def original_input(shape: FailedDelivery, body: bytes, kind: str) -> bytes | Unreadable:
    """Return the input that the consumer was given, byte for byte, or why the input is not known.

    Args:
        shape: what `recognise` returned for the message.
        body: the message's body.
        kind: the target's kind. For "lambda", an SNS notification is returned as the event that SNS gives a function.
    """
    if shape.truncated:
        return Unreadable("AWS truncated its body when delivery failed")
    match shape.kind:
        case FailedDeliveryKind.LAMBDA | FailedDeliveryKind.EVENTBRIDGE:
            return body
        case FailedDeliveryKind.LAMBDA_DESTINATION:
            found = member_bytes(body)
            return found if isinstance(found, Unreadable) else found["requestPayload"]
        case FailedDeliveryKind.SNS:
            read = sns_notification.read(body)
            if isinstance(read, Unreadable) or kind != "lambda":
                return read if isinstance(read, Unreadable) else body
            return sns_notification.function_event(read)
        case FailedDeliveryKind.SCHEDULER:
            return _sent_by_scheduler(body)
        case _ as never:
            assert_never(never)


def _from_lambda(texts: Mapping[str, str], status: str) -> FailedDelivery | None:
    """Recognise a message of a Lambda function's DLQ: by RequestID, ErrorCode (an HTTP status) and ErrorMessage.

    None: it is no such message. The body is the event that the function was given.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
    """
    if not texts.get("RequestID") or "ErrorMessage" not in texts or not _STATUS.fullmatch(status):
        return None
    return FailedDelivery(FailedDeliveryKind.LAMBDA, "", status, _short(texts["ErrorMessage"]))


def _from_a_destination(body: bytes) -> FailedDelivery | None:
    """Recognise the record (version 1.0) of a failed call that Lambda sent to an on-failure destination.

    None: the body is no such record. The record's `requestPayload` is the event that the function was given.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-async-destinations
    """
    if b'"requestPayload"' not in body:
        return None
    record = member_bytes(body)
    if isinstance(record, Unreadable) or "requestPayload" not in record:
        return None
    context = member_bytes(record.get("requestContext", b""))
    if isinstance(context, Unreadable) or json_string_text(record.get("version")) != "1.0":
        return None
    function, condition = json_string_text(context.get("functionArn")), json_string_text(context.get("condition"))
    if not (function and _FUNCTION.fullmatch(function) and json_string_text(context.get("requestId"))):
        return None
    if not (condition and _WORD.fullmatch(condition)) or condition == "Success":
        return None
    error = _type_of_error(record.get("responsePayload"))
    return FailedDelivery(FailedDeliveryKind.LAMBDA_DESTINATION, function.removesuffix(":$LATEST"), condition, error)


def _from_sns(body: bytes, texts: Mapping[str, str]) -> FailedDelivery | None:
    """Recognise a body that is an SNS notification; None: it is none. ErrorCode and ErrorMessage are optional.

    https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html does not document the format. With raw message
    delivery, nothing shows that a message came from SNS, so it is not recognised.
    """
    if b'"Notification"' not in body:
        return None
    read = sns_notification.read(body)
    if isinstance(read, Unreadable):
        return None
    code, message = texts.get("ErrorCode", "")[:_LONGEST_CODE], _short(texts.get("ErrorMessage", ""))
    return FailedDelivery(FailedDeliveryKind.SNS, read.subscription, code, message, through=read.topic)


def _from_eventbridge(texts: Mapping[str, str]) -> FailedDelivery | None:
    """Recognise a message of an EventBridge rule's DLQ, by the attributes that name rule, target and error.

    None: it is no such message. The body is the event before the rule's input transformation.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    """
    rule, target, code = texts.get("RULE_ARN", ""), texts.get("TARGET_ARN", ""), texts.get("ERROR_CODE", "")
    if not (_RULE.fullmatch(rule) and _ARN.fullmatch(target) and code) or "SCHEDULE_ARN" in texts:
        return None
    message = _short(texts.get("ERROR_MESSAGE", ""))
    return FailedDelivery(FailedDeliveryKind.EVENTBRIDGE, target, code[:_LONGEST_CODE], message, through=rule)


def _from_scheduler(body: bytes, texts: Mapping[str, str]) -> FailedDelivery | None:
    """Recognise a message of a schedule's DLQ (EventBridge Scheduler), by its attributes.

    None: it is no such message. The body is the request of the API call that the attribute TARGET_ARN names.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
    """
    schedule, target, code = texts.get("SCHEDULE_ARN", ""), texts.get("TARGET_ARN", ""), texts.get("ERROR_CODE", "")
    if not (_SCHEDULE.fullmatch(schedule) and _ARN.fullmatch(target) and code) or "RULE_ARN" in texts:
        return None
    return FailedDelivery(
        FailedDeliveryKind.SCHEDULER, _queue_of(target, body) or target, code[:_LONGEST_CODE],
        _short(texts.get("ERROR_MESSAGE", "")), through=schedule,
        truncated=texts.get("IS_PAYLOAD_TRUNCATED", "false") != "false",
    )  # fmt: skip


def _queue_of(target: str, body: bytes) -> str | None:
    api, request = _SEND_MESSAGE.fullmatch(target), member_bytes(body)
    if api is None or isinstance(request, Unreadable):
        return None
    queue = _QUEUE.fullmatch(json_string_text(request.get("QueueUrl")) or "")
    return f"arn:{api[1]}:sqs:{queue[1]}:{queue[2]}:{queue[3]}" if queue else None


def _sent_by_scheduler(body: bytes) -> bytes | Unreadable:
    request = member_bytes(body)
    if isinstance(request, Unreadable):
        return request
    message = json_string_text(request.get("MessageBody"))
    if message is None or request.keys() != {"MessageBody", "QueueUrl"}:
        return Unreadable("it is a schedule's request that does not only send a body to a queue")
    return message.encode()


def _type_of_error(payload: bytes | None) -> str:
    """Return the type of a function's error, without the error's text, which may quote the event; "": not known."""
    answer = member_bytes(payload or b"")
    name = None if isinstance(answer, Unreadable) else json_string_text(answer.get("errorType"))
    return name if name and _NAME.fullmatch(name) else ""


def _short(text: str) -> str:
    return text.strip().partition("\n")[0][:_LONGEST_MESSAGE]
