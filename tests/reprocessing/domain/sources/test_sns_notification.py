"""A notification is delivered to its subscriber as by SNS, or published again unchanged."""

from __future__ import annotations

import json
from dataclasses import replace

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.json_span import member_bytes
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources import sns_notification
from reprocessing.domain.sources.sns_notification import Notification, Publication
from tests.reprocessing.domain.dead import NOTIFICATION, SUBSCRIPTION, TOPIC


def read(body: bytes = NOTIFICATION) -> Notification:
    found = sns_notification.read(body)
    assert isinstance(found, Notification)
    return found


def test_an_endpoint_gets_snss_headers() -> None:
    assert sns_notification.headers(read()) == (
        ("x-amz-sns-message-type", "Notification"), ("x-amz-sns-message-id", "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"),
        ("x-amz-sns-topic-arn", TOPIC), ("x-amz-sns-subscription-arn", SUBSCRIPTION),
    )  # fmt: skip


def test_a_function_gets_snss_event_with_the_notifications_bytes() -> None:
    made = sns_notification.function_event(read())
    assert isinstance(made, bytes)
    ours = json.loads(NOTIFICATION)
    theirs = {
        name.replace("URL", "Url"): ours[name]
        for name in ("Type", "MessageId", "TopicArn", "Subject", "Message", "Timestamp", "SignatureVersion",
                     "Signature", "SigningCertURL", "UnsubscribeURL", "MessageAttributes")
    }  # fmt: skip
    record = {"EventSource": "aws:sns", "EventVersion": "1.0", "EventSubscriptionArn": SUBSCRIPTION, "Sns": theirs}
    assert json.dumps(json.loads(made)) == json.dumps({"Records": [record]})
    for value in read().fields.values():
        assert value in made


def test_a_missing_subject_is_null_and_missing_attributes_are_empty_for_a_function() -> None:
    bare = {name: value for name, value in read().fields.items() if name not in {"Subject", "MessageAttributes"}}
    body = b"{" + b",".join(json.dumps(name).encode() + b":" + value for name, value in bare.items()) + b"}"
    made = sns_notification.function_event(read(body))
    assert isinstance(made, bytes)
    sns = json.loads(made)["Records"][0]["Sns"]
    assert (sns["Subject"], sns["MessageAttributes"]) == (None, {})


def test_a_notification_without_a_subscription_has_no_event() -> None:
    found = sns_notification.function_event(read(NOTIFICATION.replace(b"SubscriptionArn=", b"x=")))
    assert found == Unreadable("it does not name its subscription, which the function's event must contain")


def test_a_notification_is_published_again_with_subject_and_attributes_of_every_type() -> None:
    attributes = {
        "kind": Attribute("String", "order"), "sum": Attribute("Number", "12.50"),
        "tags": Attribute("String.Array", '["a"]'), "raw": Attribute("Binary", b"\x02\x03\x04"),
    }  # fmt: skip
    assert sns_notification.publication(read(), attempt=7, group_id="g", deduplication_id="d") == Publication(
        attempt=7, message='Hello world! "café"'.encode(), attributes=attributes, subject="My First Message",
        group_id="g", deduplication_id="d",
    )  # fmt: skip


def test_a_notification_without_attributes_and_subject_is_published_without_them() -> None:
    bare = {name: value for name, value in read().fields.items() if name not in {"Subject", "MessageAttributes"}}
    assert sns_notification.publication(replace(read(), fields=bare), attempt=7) == Publication(
        attempt=7, message='Hello world! "café"'.encode()
    )


def test_a_notification_with_invalid_attributes_is_not_published() -> None:
    for wrong, cut in ((b"AgME", b"?"), (b'"Type":"Binary",', b"")):
        found = sns_notification.publication(read(NOTIFICATION.replace(wrong, cut)), attempt=1)
        assert found == Unreadable("its message or its attributes cannot be read")


def test_an_address_that_cannot_be_read_names_no_subscription() -> None:
    for wrong in (b"[?", b"a?" + b"x=1&" * 10):
        address = NOTIFICATION.replace(b"sns.us-west-2.amazonaws.com/?", wrong)
        assert read(address).subscription == ""


def test_a_refused_body_is_not_quoted() -> None:
    assert sns_notification.read(b'{"secret":1}') == Unreadable("it is not an SNS notification")
    assert member_bytes(NOTIFICATION) == read().fields
    assert "world" not in repr(read())
