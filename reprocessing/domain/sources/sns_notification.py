"""Read an SNS notification in a message body, to deliver it to its subscriber or to publish it again.

https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.json_span import json_string_text, member_bytes
from reprocessing.domain.message.json_view import Unreadable

#: The content type with which SNS posts notifications to HTTP endpoints.
CONTENT_TYPE: Final = "text/plain; charset=UTF-8"

_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}")
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_NEEDED: Final = ("Type", "MessageId", "TopicArn", "Message", "Timestamp")
#: The members of the event that a function gets, in SNS's order. In the event, "URL" at the end of a name is "Url".
_OF_A_RECORD: Final = (
    "Type", "MessageId", "SequenceNumber", "TopicArn", "Subject", "Message", "Timestamp", "SignatureVersion",
    "Signature", "SigningCertURL", "UnsubscribeURL", "MessageAttributes",
)  # fmt: skip
#: The values of members that a notification lacks.
_WHERE_ABSENT: Final = {"Subject": b"null", "MessageAttributes": b"{}"}


@dataclass(frozen=True, slots=True)
class Notification:
    """One SNS notification, as it was delivered to a subscription.

    Attributes:
        topic: the topic's ARN.
        subscription: the subscription's ARN, from the UnsubscribeURL; empty: not known.
        fields: the unchanged bytes of each value of the notification, by name.
    """

    topic: str
    subscription: str
    message_id: str
    fields: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One message to publish to an SNS topic.

    `attempt`: the attempt's id, by which the caller finds the outcome. `group_id` and `deduplication_id` are only for
    FIFO topics.
    """

    attempt: int
    message: bytes = field(repr=False)
    attributes: Attributes = field(repr=False, default_factory=dict)
    subject: str | None = field(repr=False, default=None)
    group_id: str | None = None
    deduplication_id: str | None = None


def read(body: bytes) -> Notification | Unreadable:
    """Return the notification in a body, or `Unreadable` with the reason.

    JSON with a member that SNS does not use is not accepted as a notification.
    """
    found = member_bytes(body)
    if isinstance(found, Unreadable):
        return found
    kind, message_id, topic, message, moment = (json_string_text(found.get(name)) for name in _NEEDED)
    if kind != "Notification" or message is None or moment is None or not found.keys() <= set(_OF_A_RECORD):
        return Unreadable("it is not an SNS notification")
    if not (topic and _TOPIC.fullmatch(topic) and message_id and _ID.fullmatch(message_id)):
        return Unreadable("it is not an SNS notification: its ids are not SNS's")
    return Notification(topic, _subscription(topic, json_string_text(found.get("UnsubscribeURL"))), message_id, found)


def headers(notification: Notification) -> tuple[tuple[str, str], ...]:
    """Return the HTTP headers with which SNS posts a notification to an endpoint."""
    values = (
        ("x-amz-sns-message-type", "Notification"),
        ("x-amz-sns-message-id", notification.message_id),
        ("x-amz-sns-topic-arn", notification.topic),
        ("x-amz-sns-subscription-arn", notification.subscription),
    )
    return tuple((name, value) for name, value in values if value)


def function_event(notification: Notification) -> bytes | Unreadable:
    """Return the event that SNS gives a Lambda function: one record, with the notification's bytes as values.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html. If the notification has no subject, the subject is null;
    if it has no attributes, the attributes are {}. Events that were recorded from AWS have the same values.
    """
    if not notification.subscription:
        return Unreadable("it does not name its subscription, which the function's event must contain")
    members = b",".join(
        b'"%s":%s' % (name.replace("URL", "Url").encode(), value)
        for name in _OF_A_RECORD
        if (value := notification.fields.get(name, _WHERE_ABSENT.get(name))) is not None
    )
    subscription = json.dumps(notification.subscription).encode()
    return (
        b'{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","EventSubscriptionArn":%s,"Sns":{%s}}]}'
        % (subscription, members)
    )  # fmt: skip


def publication(
    notification: Notification, *, attempt: int, group_id: str | None = None, deduplication_id: str | None = None
) -> Publication | Unreadable:
    """Return the message from which SNS made the notification, to publish it again with subject and attributes."""
    message = json_string_text(notification.fields["Message"])
    attributes = _attributes(notification.fields.get("MessageAttributes"))
    if message is None or isinstance(attributes, Unreadable):
        return Unreadable("its message or its attributes cannot be read")
    return Publication(
        attempt=attempt, message=message.encode(), attributes=attributes,
        subject=json_string_text(notification.fields.get("Subject")), group_id=group_id,
        deduplication_id=deduplication_id,
    )  # fmt: skip


def _subscription(topic: str, url: str | None) -> str:
    """Return the subscription's ARN from an UnsubscribeURL; empty if the URL names no subscription of the topic."""
    try:
        named = parse_qs(urlsplit(url or "").query, max_num_fields=10).get("SubscriptionArn", [])
    except ValueError:
        return ""
    if len(named) != 1:
        return ""
    head, _, name = named[0].rpartition(":")
    return named[0] if head == topic and _ID.fullmatch(name) else ""


def _attributes(raw: bytes | None) -> dict[str, Attribute] | Unreadable:
    found = member_bytes(raw if raw is not None else b"{}")
    if isinstance(found, Unreadable):
        return found
    read_back: dict[str, Attribute] = {}
    for name, raw_attribute in found.items():
        parts = member_bytes(raw_attribute)
        if isinstance(parts, Unreadable):
            return parts
        attribute = _attribute(json_string_text(parts.get("Type")), json_string_text(parts.get("Value")))
        if attribute is None:
            return Unreadable("one of its attributes has no type or no value")
        read_back[name] = attribute
    return read_back


def _attribute(kind: str | None, value: str | None) -> Attribute | None:
    if kind is None or value is None:
        return None
    if not kind.startswith("Binary"):
        return Attribute(kind, value)
    try:
        return Attribute(kind, base64.b64decode(value, validate=True))
    except ValueError:
        return None
