"""An object is read up to a size; each refusal of S3 has its own answer. Against moto."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.gateways.aws import forget_clients
from reprocessing.gateways.aws_services.s3_get import (
    Absent,
    Denied,
    FoundObject,
    NoAnswer,
    ReadObject,
    TooLarge,
    read_object,
)
from tests.nobody import nobody
from tests.reprocessing.gateways.aws_stand_in import REGION, Aws


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = f"large-{uuid4().hex[:12]}"
    aws.s3.create_bucket(Bucket=name)
    return name


@pytest.mark.parametrize(
    ("size", "found"), [(0, FoundObject(b"")), (10, FoundObject(b"x" * 10)), (11, TooLarge(11))], ids=["0", "10", "11"]
)
def test_an_object_is_read_up_to_the_size_that_is_allowed(aws: Aws, bucket: str, size: int, found: ReadObject) -> None:
    aws.s3.put_object(Bucket=bucket, Key="a/ü", Body=b"x" * size)
    assert read_object(PointerToS3(bucket, "a/ü"), REGION, most=10) == found


def test_what_is_not_there_is_absent(bucket: str) -> None:
    assert read_object(PointerToS3(bucket, "b"), REGION, most=10) == Absent()
    assert read_object(PointerToS3(f"{bucket}-none", "a"), REGION, most=10) == Absent()


@pytest.mark.parametrize(
    ("status", "code", "answer"),
    [
        (403, "AccessDenied", Denied("AccessDenied")), (401, "Unauthorized", Denied("Unauthorized")),
        (500, "InternalError", NoAnswer("error 500 InternalError")),
        (301, "PermanentRedirect", NoAnswer("error 301 PermanentRedirect")),
    ],
    ids=["403", "401", "500", "301"],
)  # fmt: skip
def test_what_s3_refuses_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, answer: ReadObject
) -> None:
    class Refusing:
        def get_object(self, **_: object) -> None:
            said: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(said, "GetObject")

    monkeypatch.setattr("reprocessing.gateways.aws_services.s3_get.s3_client", lambda *_: Refusing())
    assert read_object(PointerToS3("b", "k"), REGION, most=10) == answer


def test_where_s3_does_not_answer_that_is_the_answer(afresh: pytest.MonkeyPatch) -> None:
    with nobody() as port:
        afresh.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
        forget_clients()
        found = read_object(PointerToS3("bucket", "k"), REGION, most=10)
    assert isinstance(found, NoAnswer)
    assert "Could not connect" in found.why
