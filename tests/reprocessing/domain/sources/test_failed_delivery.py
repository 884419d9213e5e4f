"""Letters that did not come from a source queue are recognised strictly, and their consumer's input is recovered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources.failed_delivery import FailedDelivery, FailedDeliveryKind, original_input, recognise
from tests.reprocessing.domain import dead
from tests.reprocessing.domain.dead import (
    EVENT,
    LETTERS,
    NOTIFICATION,
    OF_A_RULE,
    OF_A_SCHEDULE,
    OF_LAMBDA,
    PAYLOAD,
    RECORD,
    REQUEST,
    RULE,
    SEND_MESSAGE,
    SUBSCRIPTION,
    TOPIC,
    Dead,
    texts,
)  # fmt: skip

QUEUE = "arn:aws:sqs:us-west-2:123456789012:does-not-exist"
SHAPES = {
    "lambda": FailedDelivery(FailedDeliveryKind.LAMBDA, "", "200", "it broke"),
    "lambda_destination": FailedDelivery(
        FailedDeliveryKind.LAMBDA_DESTINATION, dead.FUNCTION, "RetriesExhausted", "ValueError"
    ),
    "sns": FailedDelivery(FailedDeliveryKind.SNS, SUBSCRIPTION, "", "", through=TOPIC),
    "eventbridge": FailedDelivery(
        FailedDeliveryKind.EVENTBRIDGE, dead.TARGET, "NO_PERMISSIONS", "not allowed", through=RULE
    ),
    "scheduler": FailedDelivery(
        FailedDeliveryKind.SCHEDULER, QUEUE, "AWS.SimpleQueueService.NonExistentQueue",
        "The specified queue does not exist.",
        through=dead.SCHEDULE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LETTERS)
def test_each_kind_is_recognised_unless_the_letter_came_from_a_queue(name: str) -> None:
    assert LETTERS[name].shape() == SHAPES[name]
    assert LETTERS[name].shape(DeadLetterQueueSourceArn="arn:aws:sqs:eu-west-1:123456789012:orders") is None


@pytest.mark.parametrize("body", [b"", b"hello", PAYLOAD, EVENT, REQUEST])
def test_a_plain_letter_has_no_shape(body: bytes) -> None:
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
        Dead(RECORD.replace(b"requestContext", b"context")),
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
def test_a_similar_letter_has_no_shape(letter: Dead) -> None:
    assert letter.shape() is None


@pytest.mark.parametrize(
    "letter",
    [
        Dead(NOTIFICATION, OF_LAMBDA), Dead(RECORD, OF_LAMBDA), Dead(PAYLOAD, OF_LAMBDA | OF_A_RULE),
        Dead(EVENT, OF_A_RULE | OF_A_SCHEDULE), Dead(NOTIFICATION, OF_A_RULE),
    ],
)  # fmt: skip
def test_a_letter_of_two_possible_kinds_has_no_shape(letter: Dead) -> None:
    assert letter.shape() is None


def test_the_error_attributes_of_sns_are_read() -> None:
    letter = Dead(NOTIFICATION, texts(RequestID="1", ErrorCode="NonExistentQueue", ErrorMessage="no queue"))
    assert letter.shape() == FailedDelivery(
        FailedDeliveryKind.SNS, SUBSCRIPTION, "NonExistentQueue", "no queue", through=TOPIC
    )


@pytest.mark.parametrize("wrong", [b"", b"arn:aws:sns:us-west-2:123456789012:Other"])
def test_a_notification_with_a_foreign_subscription_names_none(wrong: bytes) -> None:
    shape = Dead(NOTIFICATION.replace(SUBSCRIPTION.encode(), wrong)).shape()
    assert shape == FailedDelivery(FailedDeliveryKind.SNS, "", "", "", through=TOPIC)


def shaped(letter: Dead) -> FailedDelivery:
    shape = letter.shape()
    assert shape is not None
    return shape


def test_a_version_or_an_alias_stays_with_its_function() -> None:
    for qualifier in (b":7", b":live"):
        shape = shaped(Dead(RECORD.replace(b":$LATEST", qualifier, 1)))
        assert shape.failed == dead.FUNCTION + qualifier.decode()


def test_a_functions_message_about_its_input_is_not_shown() -> None:
    shape = shaped(LETTERS["lambda_destination"])
    assert "4111" not in repr(shape) + shape.message


def test_a_message_is_short_and_has_one_line() -> None:
    shape = shaped(Dead(PAYLOAD, OF_LAMBDA | texts(ErrorMessage="x" * 900 + "\nmore")))
    assert shape.message == "x" * 200


@pytest.mark.parametrize(
    ("name", "absent"),
    [("eventbridge", "ERROR_MESSAGE"), ("scheduler", "ERROR_MESSAGE"), ("scheduler", "IS_PAYLOAD_TRUNCATED")],
)
def test_the_message_and_the_sign_of_a_cut_may_be_missing(name: str, absent: str) -> None:
    shape = shaped(Dead(LETTERS[name].body, without(dict(LETTERS[name].attributes), absent)))
    assert (shape.truncated, shape.message == "") == (False, absent == "ERROR_MESSAGE")


def test_a_schedule_of_another_api_names_the_api() -> None:
    api = SEND_MESSAGE.replace("sendMessage", "purgeQueue")
    assert shaped(Dead(REQUEST, OF_A_SCHEDULE | texts(TARGET_ARN=api))).failed == api


@pytest.mark.parametrize(
    ("name", "kinds", "expected"),
    [
        ("lambda", ["lambda", "sqs"], PAYLOAD), ("lambda_destination", ["lambda", "http"], PAYLOAD),
        ("sns", ["sqs", "http"], NOTIFICATION), ("eventbridge", ["lambda", "sqs"], EVENT),
        ("scheduler", ["sqs"], 'Hello, "wörld"!'.encode()),
    ],
)  # fmt: skip
def test_the_consumers_input_is_recovered_byte_for_byte(name: str, kinds: list[str], expected: bytes) -> None:
    assert [original_input(SHAPES[name], LETTERS[name].body, kind) for kind in kinds] == [expected] * len(kinds)


def test_a_truncated_body_and_a_request_with_more_than_a_message_are_not_recovered() -> None:
    shape = shaped(Dead(REQUEST, OF_A_SCHEDULE | texts(IS_PAYLOAD_TRUNCATED="true")))
    assert original_input(shape, REQUEST, "sqs") == Unreadable("AWS truncated its body when delivery failed")
    body = REQUEST.replace(b'"QueueUrl"', b'"DelaySeconds":5,"QueueUrl"')
    why = "it is a schedule's request that does not only send a body to a queue"
    assert original_input(SHAPES["scheduler"], body, "sqs") == Unreadable(why)


pieces = st.sampled_from([NOTIFICATION, RECORD, EVENT, REQUEST, b"{", b"}", b'"requestPayload"', b'"Notification"'])
somebodys = st.dictionaries(
    st.sampled_from(sorted(OF_LAMBDA | OF_A_RULE | OF_A_SCHEDULE)),
    st.builds(Attribute, st.sampled_from(["String", "Number"]), st.text(max_size=20))
    | st.builds(Attribute, st.just("Binary"), st.binary(max_size=20)),
)


@pytest.mark.soak
@given(st.binary(max_size=200) | st.lists(pieces | st.binary(max_size=5)).map(b"".join), somebodys)
def test_no_letter_makes_recognition_raise(body: bytes, attributes: dict[str, Attribute]) -> None:
    recognise(body, attributes, {})
    for shape in SHAPES.values():
        if shape.kind is not FailedDeliveryKind.LAMBDA_DESTINATION or b'"requestPayload"' in body:
            original_input(shape, body, "lambda")
