"""What is told of a failed receive, and what is not."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from botocore.exceptions import NoCredentialsError

from redrive_service.broker.failure import ReceiveFailure
from tests.broker.benches import refusal


@dataclass
class Answer:
    status: int
    body: bytes | None

    def read(self) -> bytes | None:
        return self.body


def _error(kind: object) -> bytes:
    return json.dumps({"__type": kind, "message": "the canonical request was AKIASECRET"}).encode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (_error("com.amazonaws.sqs#QueueDoesNotExist"), "QueueDoesNotExist"),
        (_error("com.amazonaws.sqs#KMS.ThrottlingException"), "KMS.ThrottlingException"),
        (_error("RequestThrottled"), "RequestThrottled"),
        (_error("com.amazonaws.sqs#secret payload\n"), ""),
        (_error(["QueueDoesNotExist"]), ""),
        (b"<html>502 Bad Gateway</html>", ""),
        (b"[" * 10_000, ""),
        (b'"' + b"a" * 20_000 + b'"', ""),
        (b"\xff\xfe", ""),
        (b"null", ""),
        (b"", ""),
        (None, ""),
    ],
    ids=["code", "dotted", "bare", "text", "list", "page", "deep", "long", "not text", "null", "empty", "none"],
)
def test_only_an_error_code_is_taken_from_an_answer(body: bytes | None, code: str) -> None:
    assert ReceiveFailure.from_answer(Answer(403, body)) == ReceiveFailure(status=403, code=code)


def test_a_connection_that_failed_is_told_by_curls_number() -> None:
    failure = ReceiveFailure.from_answer(Answer(599, None), curl_error=28)
    assert failure == ReceiveFailure(status=599, code="curl-28")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (refusal("RequestThrottled"), (403, "RequestThrottled")),
        (NoCredentialsError(), (599, "NoCredentialsError")),
        (ValueError("a payload"), (599, "ValueError")),
    ],
    ids=["of SQS", "no credentials", "any other"],
)
def test_an_exception_is_told_by_its_code_or_its_class_alone(error: Exception, told: tuple[int, str]) -> None:
    assert ReceiveFailure.from_exception(error) == ReceiveFailure(status=told[0], code=told[1])
