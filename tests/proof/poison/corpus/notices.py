"""What AWS's services put into queues: notifications, events, invocation records; whole, broken, and nested."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.proof.poison.corpus.payload import Payload, Typed, text

_Set = dict[str, tuple[str, str | bytes]]

_TOPIC: Final = "arn:aws:sns:eu-west-1:111122223333:orders"
_FUNCTION: Final = "arn:aws:lambda:eu-west-1:111122223333:function:charge"
_RULE: Final = "arn:aws:events:eu-west-1:111122223333:rule/nightly"
_SCHEDULE: Final = "arn:aws:scheduler:eu-west-1:111122223333:schedule/default/nightly"
_SEND: Final = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"


def some() -> Iterator[Payload]:
    for name, document in {**dict(_of_sns()), **dict(_of_buses()), **dict(_of_others())}.items():
        yield Payload(f"notice: {name}", json.dumps(document))
    yield Payload("notice: SNS cut short", json.dumps(notification())[:-9])
    yield Payload("notice: SNS twice in one", json.dumps(notification()) * 2)
    yield Payload(
        "notice: SNS with equal names", json.dumps(notification()).replace('"Type"', '"Type": "X", "Type"', 1)
    )
    yield Payload("notice: an event with NaN", json.dumps(event(detail={"n": float("nan")})), closed=True)
    digits = json.dumps(event()).replace('"resources": []', '"resources": [' + "9" * 5_000 + "]")
    yield Payload("notice: an event with a huge number among resources", digits)
    for name, (body, attributes) in _WITH_ATTRIBUTES.items():
        yield Payload(f"notice: {name}", body, attributes)


def notification(**fields: object) -> dict[str, object]:
    return {
        "Type": "Notification", "MessageId": "95df01b4-ee98-5cb9-9903-4c221d41eb5e", "TopicArn": _TOPIC,
        "Subject": "sns-subject", "Message": "sns-message-text", "Timestamp": "2026-01-02T03:04:05.000Z",
        "SignatureVersion": "1", "Signature": "c2ln", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/x.pem",
        "UnsubscribeURL": f"https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={_TOPIC}:9b-1",
        **fields,
    }  # fmt: skip


def event(**fields: object) -> dict[str, object]:
    return {
        "version": "0", "id": "6a7e8feb-b491", "detail-type": "paid", "source": "shop.orders", "account": "1",
        "time": "2026-01-02T03:04:05Z", "region": "eu-west-1", "resources": [], "detail": {"order": "event-order"},
        **fields,
    }  # fmt: skip


def _of_sns() -> Iterator[tuple[str, Mapping[str, object]]]:
    yield "SNS", notification()
    yield "SNS within SNS", notification(Message=json.dumps(notification()))
    yield "SNS of a subscription", {"Type": "SubscriptionConfirmation", "Token": "sns-token", "TopicArn": _TOPIC}
    yield "SNS with a message of an object", notification(Message={"a": 1})
    yield "SNS with a message of null", notification(Message=None)
    yield "SNS with another name", notification(Extra="another name")
    yield "SNS without a topic", notification(TopicArn="arn:aws:sns:::")
    yield "SNS that names another topic's subscription", notification(UnsubscribeURL="https://x/?SubscriptionArn=a:b")
    yield "SNS with a broken address", notification(UnsubscribeURL="https://[::1")
    attributes: Any = {"raw": {"Type": "Binary", "Value": "AAEC"}, "n": {"Type": "Number", "Value": "1"}}
    yield "SNS with attributes", notification(MessageAttributes=attributes)
    yield "SNS with a broken binary", notification(MessageAttributes={"raw": {"Type": "Binary", "Value": "*"}})
    yield "SNS with attributes of a list", notification(MessageAttributes=[1])
    yield "SNS with an attribute without value", notification(MessageAttributes={"a": {"Type": "String"}})


def _of_buses() -> Iterator[tuple[str, Mapping[str, object]]]:
    yield "an event", event()
    yield "an event in an event", event(detail=event())
    yield "an event without detail", {name: one for name, one in event().items() if name != "detail"}
    yield "an event with a detail of a text", event(detail="a text for detail")
    yield "an event of AWS's own", event(source="aws.ec2")
    yield "an event at no time", event(time="yesterday")
    yield "an event at the beginning of time", event(time="0001-01-01T00:00:00+14:00")
    yield "an event at the end of time", event(time="9999-12-31T23:59:59-14:00")
    yield "an event with resources of numbers", event(resources=[1, 2])
    yield "an event with resources of a text", event(resources="arn")
    yield "an event with a source of 1000 characters", event(source="s" * 1_000)
    yield "an event with an empty type", event(**{"detail-type": ""})


def _of_others() -> Iterator[tuple[str, Mapping[str, object]]]:
    bucket: Any = {"bucket": {"name": "b"}, "object": {"key": "k%20+ey"}}
    yield "S3", {"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": bucket}]}
    yield "S3's test", {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "s3-bucket-name"}
    yield "SQS records", {"Records": [{"messageId": "m", "receiptHandle": "h", "body": "record-body"}]}
    record: Any = {
        "version": "1.0", "timestamp": "2026-01-02T03:04:05Z", "requestPayload": {"order": "requested"},
        "requestContext": {
            "requestId": "e4b46cbf-b738", "functionArn": f"{_FUNCTION}:$LATEST", "condition": "RetriesExhausted",
            "approximateInvokeCount": 3,
        },
        "responseContext": {"statusCode": 200}, "responsePayload": {"errorType": "ValueError", "errorMessage": "q"},
    }  # fmt: skip
    yield "an invocation record", record
    yield (
        "an invocation record of a success",
        record | {"requestContext": record["requestContext"] | {"condition": "Success"}},
    )
    yield "an invocation record of no function", record | {"requestContext": {"requestId": "r", "functionArn": "f"}}
    yield "an invocation record within SNS", notification(Message=json.dumps(record))
    yield "an invocation record with a notification", record | {"requestPayload": notification()}


_OF_RULE: Final[_Set] = {
    "RULE_ARN": text(_RULE), "TARGET_ARN": text(_FUNCTION), "ERROR_CODE": text("NO_PERMISSIONS"),
    "ERROR_MESSAGE": text("error-message-of-a-rule"),
}  # fmt: skip
_OF_SCHEDULE: Final[_Set] = {
    "SCHEDULE_ARN": text(_SCHEDULE), "TARGET_ARN": text(_SEND), "ERROR_CODE": text("AWS.SimpleQueueService.X"),
    "ERROR_MESSAGE": text("error-message-of-a-schedule"),
}  # fmt: skip
_REQUEST: Final = json.dumps(
    {"MessageBody": "of a schedule", "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"}
)
_OF_LAMBDA: Final[_Set] = {
    "RequestID": text("e4b46cbf-b738"), "ErrorCode": ("Number", "200"), "ErrorMessage": text("lambda-error-message"),
}  # fmt: skip
_WITH_ATTRIBUTES: Final[dict[str, tuple[str, Typed]]] = {
    "Lambda's dead letter": ('{"order": "of lambda"}', _OF_LAMBDA),
    "Lambda's dead letter with a status of a word": ("{}", _OF_LAMBDA | {"ErrorCode": ("Number", "20000")}),
    "a rule's dead letter": (json.dumps(event()), _OF_RULE),
    "a rule's dead letter of a strange target": ("x", _OF_RULE | {"TARGET_ARN": text("arn:aws:x:::" + "<b>" * 300)}),
    "a schedule's dead letter": (_REQUEST, _OF_SCHEDULE),
    "a schedule's dead letter cut short": (_REQUEST, _OF_SCHEDULE | {"IS_PAYLOAD_TRUNCATED": text("true")}),
    "a schedule's dead letter of another API": ("{}", _OF_SCHEDULE | {"TARGET_ARN": text(_FUNCTION)}),
    "a rule's and a schedule's": ("{}", _OF_RULE | _OF_SCHEDULE),
    "Lambda's with SNS": (json.dumps(notification()), _OF_LAMBDA),
}
