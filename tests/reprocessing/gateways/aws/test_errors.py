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

from reprocessing.domain.replay.verdicts import NotSent, Refused, Unknown
from reprocessing.gateways.aws.errors import error_in_words, is_of_an_entry, out_of_reach, outcome_of

URL = "https://sqs.eu-west-1.amazonaws.com/"


def refusal(code: str, status: int = 400, message: str = "said.") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # as much of an answer as is read
        "SendMessageBatch",
    )


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        ProxyConnectionError(proxy_url="http://proxy", error="refused"),
        NoCredentialsError(),
        SSLError(endpoint_url=URL, error=TlsError(ssl.SSLCertVerificationError(1, "certificate verify failed"))),
    ],
)
def test_what_failed_before_a_word_was_written_was_not_sent(error: Exception) -> None:
    assert isinstance(outcome_of(error), NotSent)


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        HTTPClientError(error="anything"),
        SSLError(endpoint_url=URL, error=TlsError(ssl.SSLError(1, "record layer failure"))),
        RuntimeError("anything"),
    ],
)
def test_what_failed_later_may_have_gone_out(error: Exception) -> None:
    assert isinstance(outcome_of(error), Unknown)


def test_a_request_that_is_too_large_for_the_door_is_one_letters_fault() -> None:
    error = refusal("RequestEntityTooLarge", 413)
    assert is_of_an_entry(error)
    assert is_of_an_entry(refusal("413", 413))
    assert outcome_of(error) == Refused("RequestEntityTooLarge", "said", poison=True)


@pytest.mark.parametrize("code", ["AccessDenied", "RequestThrottled", "NonExistentQueue", "KMS.NotFoundException"])
def test_what_ails_a_queue_is_no_letters_fault(code: str) -> None:
    assert not is_of_an_entry(refusal(code))


def test_an_error_of_a_letters_form_is_told_without_its_content() -> None:
    error = ParamValidationError(report="value: secret-body")
    assert "secret-body" not in f"{outcome_of(error)} {error_in_words(error)} {out_of_reach(URL, 'SendMessage', error)}"
    assert "secret-body" not in error_in_words(ValueError("secret-body"))


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("AccessDeniedException", "Allow sqs:ReceiveMessage on it, and on its KMS key what the action needs"),
        ("KMS.AccessDeniedException", "Allow sqs:ReceiveMessage on it, and on its KMS key what the action needs"),
        ("KMS.DisabledException", "Check the state and the policy of its KMS key."),
        ("KMS.ThrottlingException", "It is tried again with the next call"),
        ("AWS.SimpleQueueService.NonExistentQueue", "Check its name, account and region."),
        ("InvalidClientTokenId", "Renew the credentials of this process."),
        ("SignatureDoesNotMatch", "Renew the credentials of this process."),
        ("InternalError", "It is tried again with the next call"),
    ],
)
def test_each_refusal_has_its_cure(code: str, cure: str) -> None:
    sentence = str(out_of_reach(URL, "ReceiveMessage", refusal(code)))
    bare = code.removeprefix("AWS.SimpleQueueService.")
    assert sentence.startswith(f"{URL}: ReceiveMessage failed: {bare} (said). {cure}")
