"""A notification goes to the one subscriber as SNS would deliver it, or is published again as it was."""

from __future__ import annotations

import json

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.json_span import spans
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources import sns_notification
from reprocessing.domain.sources.sns_notification import Notification, Publication
from tests.reprocessing.domain.dead import NOTIFICATION, SUBSCRIPTION, TOPIC


def read(body: bytes = NOTIFICATION) -> Notification:
    found = sns_notification.read(body)
    assert isinstance(found, Notification)
    return found


def test_an_endpoint_gets_sns_s_headers() -> None:
    assert sns_notification.headers(read()) == (
        ("x-amz-sns-message-type", "Notification"),
        ("x-amz-sns-message-id", "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"),
        ("x-amz-sns-topic-arn", TOPIC),
        ("x-amz-sns-subscription-arn", SUBSCRIPTION),
    )


def test_a_function_gets_the_event_that_sns_makes_of_it_values_byte_for_byte() -> None:
    made = sns_notification.event(read())
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


def test_a_function_is_told_that_there_is_no_subject_and_no_attribute() -> None:
    bare = {name: value for name, value in read().fields.items() if name not in {"Subject", "MessageAttributes"}}
    body = b"{" + b",".join(json.dumps(name).encode() + b":" + value for name, value in bare.items()) + b"}"
    made = sns_notification.event(read(body))
    assert isinstance(made, bytes)
    sns = json.loads(made)["Records"][0]["Sns"]
    assert (sns["Subject"], sns["MessageAttributes"]) == (None, {})


def test_a_function_is_not_given_a_notification_that_names_no_subscription() -> None:
    found = sns_notification.event(read(NOTIFICATION.replace(b"SubscriptionArn=", b"x=")))
    assert found == Unreadable("it does not name its subscription, which a function is told")


def test_it_is_published_again_with_its_subject_and_its_attributes_of_every_type() -> None:
    assert sns_notification.publication(read(), attempt=7, group_id="g", deduplication_id="d") == Publication(
        attempt=7,
        message='Hello world! "café"'.encode(),
        attributes={
            "kind": Attribute("String", "order"),
            "sum": Attribute("Number", "12.50"),
            "tags": Attribute("String.Array", '["a"]'),
            "raw": Attribute("Binary", b"\x02\x03\x04"),
        },
        subject="My First Message",
        group_id="g",
        deduplication_id="d",
    )


def test_attributes_that_cannot_be_read_are_not_published() -> None:
    found = sns_notification.publication(read(NOTIFICATION.replace(b"AgME", b"?")), attempt=1)
    assert found == Unreadable("its message or its attributes cannot be read")


def test_a_body_tells_no_more_than_that_it_is_none() -> None:
    assert sns_notification.read(b'{"secret":1}') == Unreadable("it is no notification of SNS")
    assert spans(NOTIFICATION) == read().fields
    assert "world" not in repr(read())
