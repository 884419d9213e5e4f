"""What SNS delivers to a subscriber, read back: for that one subscriber, or to be published again.

Its JSON form, and the headers that HTTP endpoints get with it:
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
from reprocessing.domain.message.json_span import spans, text_of
from reprocessing.domain.message.json_view import Unreadable

#: SNS's own content type of a notification that it posts to an HTTP endpoint.
CONTENT_TYPE: Final = "text/plain; charset=UTF-8"

_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]{1,256}")
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_NEEDED: Final = ("Type", "MessageId", "TopicArn", "Message", "Timestamp")
_KNOWN: Final = frozenset(
    {
        *_NEEDED,
        "MessageAttributes",
        "SequenceNumber",
        "Signature",
        "SignatureVersion",
        "SigningCertURL",
        "Subject",
        "UnsubscribeURL",
    }
)
#: What a function gets, in the order and spelling that SNS has for functions. The spelling of two names differs.
_OF_A_RECORD: Final = (
    ("Type", "Type"),
    ("MessageId", "MessageId"),
    ("SequenceNumber", "SequenceNumber"),
    ("TopicArn", "TopicArn"),
    ("Subject", "Subject"),
    ("Message", "Message"),
    ("Timestamp", "Timestamp"),
    ("SignatureVersion", "SignatureVersion"),
    ("Signature", "Signature"),
    ("SigningCertURL", "SigningCertUrl"),
    ("UnsubscribeURL", "UnsubscribeUrl"),
    ("MessageAttributes", "MessageAttributes"),
)
_WHERE_ABSENT: Final = {"Subject": b"null", "MessageAttributes": b"{}"}


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification.

    Attributes:
        subscription: the ARN of the subscription it was for, by its UnsubscribeURL; empty where that is missing.
        fields: each name with its value's bytes.
    """

    topic: str
    subscription: str
    message_id: str
    fields: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One letter on its way to a topic.

    Attributes:
        attempt: the id of the attempt; what became of it is reported under it.
        message: UTF-8.
        group_id: of a FIFO topic; others are not told it.
        deduplication_id: likewise.
    """

    attempt: int
    message: bytes = field(repr=False)
    attributes: Attributes = field(repr=False, default_factory=dict)
    subject: str | None = field(repr=False, default=None)
    group_id: str | None = None
    deduplication_id: str | None = None


def read(body: bytes) -> Notification | Unreadable:
    """The notification that a body is. Strict: with a name that SNS does not use it is somebody else's JSON."""
    found = spans(body)
    if isinstance(found, Unreadable):
        return found
    kind, message_id, topic, message, moment = (text_of(found.get(name)) for name in _NEEDED)
    if kind != "Notification" or message is None or moment is None or not found.keys() <= _KNOWN:
        return Unreadable("it is no notification of SNS")
    if not (topic and _TOPIC.fullmatch(topic) and message_id and _ID.fullmatch(message_id)):
        return Unreadable("it is no notification of SNS: its ids are not SNS's")
    return Notification(topic, _subscription(topic, text_of(found.get("UnsubscribeURL"))), message_id, found)


def headers(notification: Notification) -> tuple[tuple[str, str], ...]:
    """The headers that an HTTP endpoint gets with it, of those that tell one notification from another."""
    told = (
        ("x-amz-sns-message-type", "Notification"),
        ("x-amz-sns-message-id", notification.message_id),
        ("x-amz-sns-topic-arn", notification.topic),
        ("x-amz-sns-subscription-arn", notification.subscription),
    )
    return tuple((name, value) for name, value in told if value)


def event(notification: Notification) -> bytes | Unreadable:
    """What a subscribed function is given: an event of one record, its values byte for byte those of the notification.

    The form: https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html. Where the notification has no subject,
    functions get null; where it has no attributes, {}: so in events that were recorded and published, while AWS's
    page has no example of it.
    """
    if not notification.subscription:
        return Unreadable("it does not name its subscription, which a function is told")
    members = b",".join(
        b'"%s":%s' % (theirs.encode(), value)
        for ours, theirs in _OF_A_RECORD
        if (value := notification.fields.get(ours, _WHERE_ABSENT.get(ours))) is not None
    )
    subscription = json.dumps(notification.subscription).encode()
    return (
        b'{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","EventSubscriptionArn":%s,"Sns":{%s}}]}'
        % (subscription, members)
    )  # fmt: skip


def publication(
    notification: Notification, *, attempt: int, group_id: str | None = None, deduplication_id: str | None = None
) -> Publication | Unreadable:
    """What was published, to be published again: message, subject and attributes of every type."""
    message = text_of(notification.fields["Message"])
    attributes = _attributes(notification.fields.get("MessageAttributes"))
    if message is None or isinstance(attributes, Unreadable):
        return Unreadable("its message or its attributes cannot be read")
    return Publication(
        attempt=attempt,
        message=message.encode(),
        attributes=attributes,
        subject=text_of(notification.fields.get("Subject")),
        group_id=group_id,
        deduplication_id=deduplication_id,
    )


def _subscription(topic: str, url: str | None) -> str:
    """The subscription that a notification can be ended with; empty where it is none of the topic's."""
    try:
        named = parse_qs(urlsplit(url or "").query, max_num_fields=10).get("SubscriptionArn", [])
    except ValueError:
        return ""
    if len(named) != 1:
        return ""
    head, _, name = named[0].rpartition(":")
    return named[0] if head == topic and _ID.fullmatch(name) else ""


def _attributes(raw: bytes | None) -> dict[str, Attribute] | Unreadable:
    found = spans(raw if raw is not None else b"{}")
    if isinstance(found, Unreadable):
        return found
    read_back: dict[str, Attribute] = {}
    for name, one in found.items():
        parts = spans(one)
        if isinstance(parts, Unreadable):
            return parts
        attribute = _attribute(text_of(parts.get("Type")), text_of(parts.get("Value")))
        if attribute is None:
            return Unreadable("an attribute of it has no type or no value")
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
