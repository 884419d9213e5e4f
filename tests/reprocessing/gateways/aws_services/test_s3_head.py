"""Only an object that S3 itself says is not there is gone. Against moto."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.gateways.aws import forget_clients
from reprocessing.gateways.aws_services.s3_head import are_gone
from tests.nobody import nobody
from tests.reprocessing.gateways.aws_stand_in import REGION, Aws


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = f"large-{uuid4().hex[:12]}"
    aws.s3.create_bucket(Bucket=name)
    return name


@pytest.mark.soak
def test_what_is_not_there_is_gone_and_nothing_else(aws: Aws, bucket: str) -> None:
    aws.s3.put_object(Bucket=bucket, Key="a/ü", Body=b"large")
    kept, lost, nowhere = PointerToS3(bucket, "a/ü"), PointerToS3(bucket, "b"), PointerToS3(f"{bucket}-none", "a")
    assert are_gone([kept, lost, nowhere, lost], REGION) == {lost, nowhere}
    assert are_gone([], REGION) == set()


@pytest.mark.parametrize("status", [400, 403, 301, 500, 503])
def test_what_s3_does_not_say_is_not_gone(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    class Refusing:
        def head_object(self, **_: object) -> None:
            answer: Any = {"Error": {"Code": str(status)}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, "HeadObject")

    monkeypatch.setattr("reprocessing.gateways.aws_services.s3_head.s3_client", lambda *_: Refusing())
    assert are_gone([PointerToS3("b", "k")], REGION) == set()


def test_where_s3_does_not_answer_nothing_is_gone(afresh: pytest.MonkeyPatch) -> None:
    with nobody() as port:
        afresh.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
        forget_clients()
        assert are_gone([PointerToS3("bucket", "k"), PointerToS3("bucket", "l")], REGION) == set()
