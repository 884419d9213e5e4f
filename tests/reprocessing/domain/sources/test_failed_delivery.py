"""Letters that did not die in a queue are recognised strictly, and what failed gets what it had been given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources.failed_delivery import Shape, ShapeKind, parcel, recognise
from tests.reprocessing.domain.dead import (
    EVENT,
    FUNCTION,
    LETTERS,
    NOTIFICATION,
    OF_A_RULE,
    OF_A_SCHEDULE,
    OF_LAMBDA,
    PAYLOAD,
    RECORD,
    REQUEST,
    RULE,
    SCHEDULE,
    SEND_MESSAGE,
    SUBSCRIPTION,
    TARGET,
    TOPIC,
    Dead,
    texts,
)

QUEUE = "arn:aws:sqs:us-west-2:123456789012:does-not-exist"
SHAPES = {
    "lambda": Shape(ShapeKind.LAMBDA, "", "200", "it broke"),
    "lambda_destination": Shape(ShapeKind.LAMBDA_DESTINATION, FUNCTION, "RetriesExhausted", "ValueError"),
    "sns": Shape(ShapeKind.SNS, SUBSCRIPTION, "", "", through=TOPIC),
    "eventbridge": Shape(ShapeKind.EVENTBRIDGE, TARGET, "NO_PERMISSIONS", "not allowed", through=RULE),
    "scheduler": Shape(
        ShapeKind.SCHEDULER, QUEUE, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.",
        through=SCHEDULE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LETTERS)
def test_each_is_recognised_as_awss_pages_show_it(name: str) -> None:
    assert LETTERS[name].shape() == SHAPES[name]


@pytest.mark.parametrize("name", LETTERS)
def test_one_that_died_in_a_queue_has_no_shape(name: str) -> None:
    assert LETTERS[name].shape(DeadLetterQueueSourceArn="arn:aws:sqs:eu-west-1:123456789012:orders") is None


def test_a_plain_letter_has_no_shape() -> None:
    for body in (b"", b"hello", PAYLOAD, EVENT, REQUEST):
        assert Dead(body).shape() is None


def without(letter: dict[str, Attribute], name: str) -> dict[str, Attribute]:
    return {one: value for one, value in letter.items() if one != name}


@pytest.mark.parametrize(
    "letter",
    [
        Dead(PAYLOAD, without(OF_LAMBDA, "RequestID")),
        Dead(PAYLOAD, without(OF_LAMBDA, "ErrorMessage")),
        Dead(PAYLOAD, OF_LAMBDA | texts(ErrorCode="200")),
        Dead(PAYLOAD, OF_LAMBDA | {"ErrorCode": Attribute("Number", "2e2")}),
        Dead(PAYLOAD, OF_LAMBDA | {"ErrorCode": Attribute("Binary", b"200")}),
        Dead(RECORD.replace(b'"1.0"', b'"1.1"')),
        Dead(RECORD.replace(b"RetriesExhausted", b"Success")),
        Dead(RECORD.replace(b"requestPayload", b"KinesisBatchInfo")),
        Dead(RECORD.replace(b":function:", b":layer:")),
        Dead(RECORD.replace(b'"version"', b'"requestPayload": 1, "version"')),
        Dead(RECORD[:-1]),
        Dead(b"[" + RECORD + b"]"),
        Dead(NOTIFICATION.replace(b'"Notification"', b'"UnsubscribeConfirmation", "x": "Notification"')),
        Dead(NOTIFICATION.replace(b'"Subject"', b'"Category"')),
        Dead(NOTIFICATION.replace(TOPIC.encode(), b"arn:aws:sqs:us-west-2:123456789012:MyTopic")),
        Dead(NOTIFICATION.replace(b'"Timestamp"', b'"Signature"')),
        Dead(EVENT, without(OF_A_RULE, "RULE_ARN")),
        Dead(EVENT, without(OF_A_RULE, "TARGET_ARN")),
        Dead(EVENT, without(OF_A_RULE, "ERROR_CODE")),
        Dead(EVENT, OF_A_RULE | texts(RULE_ARN="orders")),
        Dead(EVENT, OF_A_RULE | texts(TARGET_ARN="ship it")),
        Dead(EVENT, OF_A_RULE | {"RULE_ARN": Attribute("String.arn", RULE)}),
        Dead(REQUEST, without(OF_A_SCHEDULE, "SCHEDULE_ARN")),
        Dead(REQUEST, OF_A_SCHEDULE | texts(SCHEDULE_ARN=RULE)),
    ],
)
def test_what_only_looks_like_one_has_no_shape(letter: Dead) -> None:
    assert letter.shape() is None


@pytest.mark.parametrize(
    "letter",
    [
        Dead(NOTIFICATION, OF_LAMBDA),
        Dead(RECORD, OF_LAMBDA),
        Dead(PAYLOAD, OF_LAMBDA | OF_A_RULE),
        Dead(EVENT, OF_A_RULE | OF_A_SCHEDULE),
        Dead(NOTIFICATION, OF_A_RULE),
    ],
)
def test_what_could_be_two_things_is_none(letter: Dead) -> None:
    assert letter.shape() is None


def test_an_error_that_sns_tells_of_is_read_where_it_is_told() -> None:
    letter = Dead(NOTIFICATION, texts(RequestID="1", ErrorCode="NonExistentQueue", ErrorMessage="no queue"))
    assert letter.shape() == Shape(ShapeKind.SNS, SUBSCRIPTION, "NonExistentQueue", "no queue", through=TOPIC)


def test_a_notification_that_names_no_subscription_of_its_topic_names_none() -> None:
    for wrong in (
        b"https://x/?SubscriptionArn=",
        b"https://x/?SubscriptionArn=arn:aws:sns:us-west-2:123456789012:Other",
    ):
        shape = Dead(NOTIFICATION.replace(SUBSCRIPTION.encode(), b"x").replace(b'"https://sns.us-west-2.amazonaws.com/?Action'
                                          b'=Unsubscribe&SubscriptionArn=x"', b'"' + wrong + b'"')).shape()  # fmt: skip
        assert shape == Shape(ShapeKind.SNS, "", "", "", through=TOPIC)


def test_a_version_or_an_alias_stays_with_its_function() -> None:
    for qualifier in ("7", "live"):
        shape = Dead(RECORD.replace(b":$LATEST", f":{qualifier}".encode(), 1)).shape()
        assert shape is not None
        assert shape.failed == f"{FUNCTION}:{qualifier}"


def test_what_a_function_said_of_its_input_is_not_told() -> None:
    shape = LETTERS["lambda_destination"].shape()
    assert "4111" not in repr(shape)
    assert shape is not None
    assert "4111" not in shape.message


def test_a_message_is_short_and_has_one_line() -> None:
    shape = Dead(PAYLOAD, OF_LAMBDA | texts(ErrorMessage="x" * 900 + "\nmore")).shape()
    assert shape is not None
    assert shape.message == "x" * 200


def test_a_schedule_of_any_other_api_names_the_api() -> None:
    shape = Dead(REQUEST, OF_A_SCHEDULE | texts(TARGET_ARN=SEND_MESSAGE.replace("sendMessage", "purgeQueue"))).shape()
    assert shape is not None
    assert shape.failed == "arn:aws:scheduler:::aws-sdk:sqs:purgeQueue"


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("lambda", "lambda", PAYLOAD),
        ("lambda", "sqs", PAYLOAD),
        ("lambda_destination", "lambda", PAYLOAD),
        ("lambda_destination", "http", PAYLOAD),
        ("sns", "sqs", NOTIFICATION),
        ("sns", "http", NOTIFICATION),
        ("eventbridge", "lambda", EVENT),
        ("eventbridge", "sqs", EVENT),
        ("scheduler", "sqs", 'Hello, "wörld"!'.encode()),
    ],
)
def test_what_failed_is_given_what_it_had_been_given_byte_for_byte(name: str, kind: str, expected: bytes) -> None:
    assert parcel(SHAPES[name], LETTERS[name].body, kind) == expected


def test_what_aws_cut_short_goes_nowhere() -> None:
    shape = Dead(REQUEST, OF_A_SCHEDULE | texts(IS_PAYLOAD_TRUNCATED="true")).shape()
    assert shape is not None
    assert parcel(shape, REQUEST, "sqs") == Unreadable("AWS cut it short when it died")


def test_a_schedule_s_request_with_more_in_it_than_a_message_goes_nowhere() -> None:
    body = REQUEST.replace(b'"QueueUrl"', b'"DelaySeconds":5,"QueueUrl"')
    why = "it is a schedule's request, and not one that only sends a message to a queue"
    assert parcel(SHAPES["scheduler"], body, "sqs") == Unreadable(why)


pieces = st.sampled_from([NOTIFICATION, RECORD, EVENT, REQUEST, b"{", b"}", b'"requestPayload"', b'"Notification"'])
somebodys = st.dictionaries(
    st.sampled_from(sorted(OF_LAMBDA | OF_A_RULE | OF_A_SCHEDULE)),
    st.builds(Attribute, st.sampled_from(["String", "Number"]), st.text(max_size=20))
    | st.builds(Attribute, st.just("Binary"), st.binary(max_size=20)),
)


@given(st.binary(max_size=200) | st.lists(pieces | st.binary(max_size=5)).map(b"".join), somebodys)
def test_nothing_makes_it_raise(body: bytes, attributes: dict[str, Attribute]) -> None:
    recognise(body, attributes, {})
    for shape in SHAPES.values():
        if shape.kind is not ShapeKind.LAMBDA_DESTINATION or b'"requestPayload"' in body:
            parcel(shape, body, "lambda")
