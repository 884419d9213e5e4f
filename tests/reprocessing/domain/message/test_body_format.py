"""The format of a body, and its summary in a line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message import body_format
from reprocessing.domain.message.body_format import BodyFormat
from tests import envelopes

S3 = {"eventSource": "aws:s3", "eventName": "ObjectCreated:Put"} | {
    "s3": {"bucket": {"name": "in"}, "object": {"key": "a+b%2Fc"}},
}  # fmt: skip
SNS = {
    "Type": "Notification", "MessageId": "a-1", "TopicArn": "arn:aws:sns:eu-west-1:000000000000:orders",
    "Timestamp": "t",
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"Records": [S3]}, "S3 notification: ObjectCreated:Put, bucket in, key a b/c"),
        ({"Records": [S3, S3, S3]}, "S3 notification: ObjectCreated:Put, bucket in, key a b/c and 2 more"),
        ({"Records": [S3 | {"s3": {}}]}, "S3 notification: ObjectCreated:Put, no object is named"),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "in"}, "S3 notification: a test event, bucket in"),
        (SNS | {"Message": "hello"}, "SNS notification: topic orders"),
        (
            SNS | {"Message": json.dumps({"Records": [S3]})},
            "SNS notification: topic orders, holding S3 notification: ObjectCreated:Put, bucket in, key a b/c",
        ),
        ({"source": "shop", "detail-type": "paid", "detail": {}}, "EventBridge event: paid, from shop"),
        (envelopes.task("shop.charge", 1), "Celery task: shop.charge"),
        (envelopes.task("shop.charge", 1, retries=1), "Celery task: shop.charge, retried 1 time"),
        ({}, "JSON: no fields"),
        ({"id": 1}, "JSON: 1 field: id"),
        ({f"f{n}": n for n in range(8)}, "JSON: 8 fields: f0, f1, f2, f3, f4, f5, …"),
        ([1, 2], "JSON: a list of 2"),
        (b"12", "JSON"),
        (b"card=1&n=%20x&card=", "form: 3 fields: card, n, card"),
        (b'<?xml version="1.0"?><!-- - --><!DOCTYPE o><o:order id="1"/>', "XML: its root is o:order"),
        (b"<3 you", "text"), (b"a=1&" * 999 + b"a=1", "form: 1000 fields: a, a, a, a, a, a, …"),
        (b"a=1&" * 1_000 + b"a=1", "text"), ({"x" * 101: 1}, f"JSON: 1 field: {'x' * 100}…"),
        (SNS | {"Message": json.dumps(SNS | {"Message": ""})}, "SNS notification: topic orders"),
        (b"a=b c", "text"),
        (b"{not json", "text"),
        (b"", "text"),
        (b"\x1f\x8b\x08\xff", "bytes: looks like gzip"),
        (b"\xff\xfe", "bytes"),
    ],
)  # fmt: skip
def test_a_body_is_summarised_by_its_format(body: object, line: str) -> None:
    assert str(body_format.recognise(body if isinstance(body, bytes) else json.dumps(body).encode())) == line


@given(st.binary(max_size=300) | st.text(alphabet='<>!-?/=&%{}[]":,ab \n', max_size=300).map(str.encode))
def test_any_bytes_have_a_short_summary(body: bytes) -> None:
    found = body_format.recognise(body)
    assert found.body_format in BodyFormat
    assert len(str(found)) < 1_500


@pytest.mark.parametrize(
    "body", [b"<" * 10**6, b"<!--" * 250_000, b"a=&" * 300_000, b"<?" * 500_000, b"[" * 10**6, b"<!a" * 300_000]
)
def test_a_megabyte_of_anything_is_recognised_in_linear_time(body: bytes) -> None:
    assert body_format.recognise(body).body_format in {BodyFormat.TEXT, BodyFormat.FORM}
