"""A failure is called no more certain than it is, and its words hold nothing of a letter."""

from __future__ import annotations

import ssl

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.exceptions import SSLError as TlsError

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Unknown
from reprocessing.gateways.aws.errors import error_in_words, is_of_an_entry, out_of_reach, outcome_of

URL = "https://sqs.eu-west-1.amazonaws.com/"


def refusal(code: str, status: int = 400, message: str = "said.") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # as much of an answer as is read
        "SendMessageBatch",
    )


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (NotSent, EndpointConnectionError(endpoint_url=URL)),
        (NotSent, ConnectTimeoutError(endpoint_url=URL)),
        (NotSent, ProxyConnectionError(proxy_url="http://proxy", error="refused")),
        (NotSent, NoCredentialsError()),
        (NotSent, SSLError(endpoint_url=URL, error=TlsError(ssl.SSLCertVerificationError(1, "verify failed")))),
        (Unknown, ReadTimeoutError(endpoint_url=URL)),
        (Unknown, ConnectionClosedError(endpoint_url=URL)),
        (Unknown, HTTPClientError(error="anything")),
        (Unknown, SSLError(endpoint_url=URL, error=TlsError(ssl.SSLError(1, "record layer failure")))),
        (Unknown, RuntimeError("anything")),
    ],
)
def test_only_what_failed_before_a_word_was_written_was_not_sent(kind: type[Outcome], error: Exception) -> None:
    assert isinstance(outcome_of(error), kind)


def test_what_aws_says_of_a_letter_is_that_letters_fault_and_is_not_quoted() -> None:
    too_large = refusal("RequestEntityTooLarge", 413)
    quoting = refusal("ValidationException", message="Value 'card 4111' at 'entries.1.member.detail' failed")
    assert [is_of_an_entry(error) for error in (too_large, refusal("413", 413), quoting)] == [True] * 3
    assert outcome_of(too_large) == Refused("RequestEntityTooLarge", "said", poison=True, quotes=True)
    assert outcome_of(quoting) == Refused("ValidationException", "a part of it is not valid", poison=True)


def test_what_ails_a_queue_or_a_topic_is_no_letters_fault() -> None:
    of_the_queue = ["AccessDenied", "RequestThrottled", "NonExistentQueue", "KMS.NotFoundException"]
    of_the_topic = refusal("InvalidParameter", message="Invalid parameter: TopicArn Reason: no such form")
    errors = [*map(refusal, of_the_queue), of_the_topic]
    assert [error for error in errors if is_of_an_entry(error)] == []
    reason = "Invalid parameter: TopicArn Reason: no such form"
    assert outcome_of(of_the_topic) == Refused("InvalidParameter", reason, quotes=True)


def test_an_error_of_a_letters_form_is_told_without_its_content() -> None:
    error = ParamValidationError(report="value: secret-body")
    assert is_of_an_entry(error)
    assert outcome_of(error) == Refused("ParamValidation", "It has a part that cannot be sent to SQS.", poison=True)
    assert "secret-body" not in f"{outcome_of(error)} {error_in_words(error)} {out_of_reach(URL, 'SendMessage', error)}"
    assert "secret-body" not in error_in_words(ValueError("secret-body"))


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("AccessDeniedException", "Allow sqs:ReceiveMessage on it, and the KMS rights of this action on its key"),
        ("KMS.AccessDeniedException", "Allow sqs:ReceiveMessage on it, and the KMS rights of this action on its key"),
        ("KMS.DisabledException", "Check the state and the policy of its KMS key."),
        ("KMS.ThrottlingException", "The next call tries again."),
        ("AWS.SimpleQueueService.NonExistentQueue", "Check its name, account and region."),
        ("InvalidClientTokenId", "Renew the credentials of this process."),
        ("SignatureDoesNotMatch", "Renew the credentials of this process."),
        ("InternalError", "The next call tries again."),
    ],
)
def test_each_refusal_has_its_cure(code: str, cure: str) -> None:
    sentence = str(out_of_reach(URL, "ReceiveMessage", refusal(code)))
    bare = code.removeprefix("AWS.SimpleQueueService.")
    assert sentence.startswith(f"{URL}: ReceiveMessage failed: {bare} (said). {cure}")
