"""A body in S3 is recognised by its pointer, strictly."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message import s3_pointer
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.s3_pointer import PointerToS3

NEW = "software.amazon.payloadoffloading.PayloadS3Pointer"
OLD = "com.amazon.sqs.javamessaging.MessageS3Pointer"
WHERE = {"s3BucketName": "large-bodies", "s3Key": "a/ü/1"}
SIZE = Attribute("Number", "300000")


@pytest.mark.parametrize(("kind", "name"), [(NEW, "ExtendedPayloadSize"), (OLD, "SQSLargePayloadSize")])
def test_both_generations_of_pointers_are_recognised(kind: str, name: str) -> None:
    assert s3_pointer.read(json.dumps([kind, WHERE]).encode(), {name: SIZE}) == PointerToS3("large-bodies", "a/ü/1")


def test_the_longest_key_is_a_pointer() -> None:
    body = json.dumps([NEW, WHERE | {"s3Key": "k" * 1_024}]).encode()
    assert s3_pointer.read(body, {"ExtendedPayloadSize": SIZE}) == PointerToS3("large-bodies", "k" * 1_024)


@pytest.mark.parametrize(
    "body",
    [
        [NEW], [NEW, WHERE, 1], ["Pointer", WHERE], [{}, WHERE], [NEW, "a"], [NEW, {"s3BucketName": "large-bodies"}],
        [NEW, WHERE | {"more": 1}], [NEW, WHERE | {"s3Key": 1}], [NEW, WHERE | {"s3Key": ""}],
        [NEW, WHERE | {"s3Key": "k" * 1_025}], [NEW, WHERE | {"s3BucketName": "../etc"}],
        [NEW, WHERE | {"s3Key": "k" * 9_000}], {NEW: WHERE},
    ],
)  # fmt: skip
def test_a_similar_body_is_no_pointer(body: object) -> None:
    assert s3_pointer.read(json.dumps(body).encode(), {"ExtendedPayloadSize": SIZE}) is None


def test_a_pointer_without_its_attribute_is_an_ordinary_body() -> None:
    body = json.dumps([NEW, WHERE]).encode()
    assert s3_pointer.read(body, {}) is None
    assert s3_pointer.read(body, {"ExtendedPayloadSize": Attribute("String", "300000")}) is None


@given(
    st.binary()
    | st.lists(st.sampled_from([NEW, WHERE, 1, None, float("nan")])).map(lambda body: json.dumps(body).encode())
)
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    s3_pointer.read(body, {"ExtendedPayloadSize": SIZE})
