"""Say of a failed AWS call whether AWS may have executed it, whether a retry can succeed, and what to do."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
    SSLError,
    TokenRetrievalError,
)

from reprocessing.domain.errors import CloudWatchUnreachable, QueueRequestRefused, QueueUnreachable
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Unknown
from reprocessing.gateways.aws.clients import forget_clients
from reprocessing.gateways.aws.configuration import AwsConfigurationIsUnclear
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.aws.roles import RoleIsNotAssumed
from reprocessing.gateways.aws.throttling import THROTTLED, without_sqs_prefix

#: Error codes of SQS, SNS and EventBridge for an invalid entry of a batch. AWS may refuse the whole batch for it.
_OF_AN_ENTRY: Final = frozenset({
    "BatchRequestTooLong", "InvalidArgument", "InvalidAttributeName", "InvalidAttributeValue",
    "InvalidMessageContents", "InvalidParameter", "InvalidParameterCombination", "InvalidParameterValue",
    "MalformedDetail", "MissingParameter", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException",
    "RequestEntityTooLarge", "SerializationException", "ValidationException",
})  # fmt: skip
#: Error codes for a failure inside the service. The request may have been executed before the failure.
_OF_ITSELF: Final = frozenset({
    "InternalError", "InternalException", "InternalFailure", "InternalServerError", "InternalServerErrorException",
    "RequestTimeout", "ServiceException", "ServiceUnavailable",
})  # fmt: skip
_STALE_CREDENTIALS: Final = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
#: Errors that occur before a request is sent: there is no connection, or the request cannot be signed.
_BEFORE_ANYTHING_WENT_OUT: Final = (
    AwsConfigurationIsUnclear, ConnectTimeoutError, CredentialRetrievalError, EndpointConnectionError,
    NoCredentialsError, NoRegionError, PartialCredentialsError, ProxyConnectionError, RoleIsNotAssumed,
    TokenRetrievalError,
)  # fmt: skip
#: Error codes about permissions and resources. Error texts with these codes, or with codes of KMS (`_OF_KMS`), never
#: quote the content of a letter.
_QUOTES_NOTHING: Final = frozenset({
    "AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException", "InvalidSecurity",
    "NonExistentQueue", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException", "NotFound",
    "NotFoundException", "OptInRequired", "QueueDoesNotExist", "ResourceNotFoundException",
}) | _STALE_CREDENTIALS | THROTTLED  # fmt: skip
_OF_KMS: Final = ("KMS", "Kms")
#: This text marks SNS errors about the topic's ARN. SNS uses the same error code for invalid messages; but if the topic
#: is wrong, no letter is poison (refused for its content).
_OF_THE_TOPIC: Final = "TopicArn"
#: The error code whose error text quotes the invalid value, so the error text is not stored.
_QUOTING: Final = "ValidationException"
_SERVER_FAULT: Final = 500
_TOO_LARGE: Final = 413
_TIMED_OUT: Final = 408
_LONGEST_MESSAGE: Final = 500
NOTHING_WAS_SENT: Final = "nothing was sent: "


def code_of(error: ClientError) -> str:
    """Return the error code, without the prefix (AWS.SimpleQueueService.) that some SQS codes have."""
    code = str(error.response.get("Error", {}).get("Code", "Unknown"))
    return without_sqs_prefix(code)


def refusal_in_words(code: str) -> str:
    """Return a sentence for people about a failed entry of an SQS batch. `code`: its error code; may be empty."""
    return f"SQS refused it: {without_sqs_prefix(code) or 'it did not say why'}"


def is_of_an_entry(error: Exception) -> bool:
    """Return whether one invalid entry may be why AWS refused a batch. If so, send the other entries again."""
    if isinstance(error, ParamValidationError):
        return True
    if not isinstance(error, ClientError) or _OF_THE_TOPIC in _message(error):
        return False
    return code_of(error) in _OF_AN_ENTRY or status_of(error) == _TOO_LARGE


def outcome_of(error: Exception, service: str = "SQS") -> Outcome:
    """Return the outcome of a failed request. All letters in the request have this outcome.

    Refused: the service refused the request. NotSent: no request was sent. Unknown: for all other errors, because the
    service may have accepted the letters.
    """
    if isinstance(error, ParamValidationError):
        # The text of this error quotes content of the letter, so it is not stored.
        return Refused("ParamValidation", f"It has a part that cannot be sent to {service}.", poison=True)
    renew_credentials(error)
    if isinstance(error, ClientError):
        return _outcome_of_answer(error, service)
    if isinstance(error, _BEFORE_ANYTHING_WENT_OUT) or _is_bad_certificate(error):
        return NotSent(f"{NOTHING_WAS_SENT}{error_in_words(error)}", unreachable=True)
    return Unknown(f"{service} did not answer: {error_in_words(error)}")


def renew_credentials(error: Exception) -> None:
    """Drop all clients if the error says that credentials have expired. New clients read the credential files again."""
    code = (
        code_of(error) if isinstance(error, ClientError) else error.code if isinstance(error, RoleIsNotAssumed) else ""
    )
    if code in _STALE_CREDENTIALS:
        forget_clients()


def _outcome_of_answer(error: ClientError, service: str) -> Outcome:
    code, message, status = code_of(error), _message(error), status_of(error)
    if code not in THROTTLED and (status >= _SERVER_FAULT or status == _TIMED_OUT or code in _OF_ITSELF):
        return Unknown(f"{service} failed: {code} ({status})")
    said = "a part of it is not valid" if code == _QUOTING else message
    return Refused(code, said, poison=is_of_an_entry(error), quotes=code != _QUOTING and _may_quote(code))


def outcome_of_entry(code: str, message: str, service: str = "SQS") -> Outcome:
    """Return the outcome of one failed entry of a batch whose other entries the service accepted.

    Only the error code decides. SQS's flag SenderFault is ignored, because it is also true for throttling. After a
    failure inside the service, the outcome is Unknown. The letter is then sent again with the same deduplication id,
    so that SQS drops it if the first request was executed.
    """
    code = without_sqs_prefix(code)
    if code in _OF_ITSELF:
        return Unknown(f"{service} failed: {code}")
    return Refused(code, message[:_LONGEST_MESSAGE], poison=code in _OF_AN_ENTRY, quotes=_may_quote(code))


def _may_quote(code: str) -> bool:
    """Return whether the text of an error may quote a letter's content; True if the error code is not known."""
    return code not in _QUOTES_NOTHING and not code.startswith(_OF_KMS)


def out_of_reach(queue: QueueAddress | str, action: str, error: Exception, service: str = "sqs") -> QueueUnreachable:
    """Return the exception to raise for a failed call. Its text names the queue or ARN, the action, and what to do.

    The exception is a QueueRequestRefused if a retry would be refused again (`is_refusal`), else a QueueUnreachable.
    """
    name = queue if isinstance(queue, str) else queue.url
    renew_credentials(error)
    kind = QueueRequestRefused if is_refusal(error) else QueueUnreachable
    return kind(f"{name}: {action} failed: {error_in_words(error)}. {_cure(f'{service}:{action}', error)}")


def is_refusal(error: Exception) -> bool:
    """Return whether AWS refused the request, and would refuse it again.

    Throttling, failures inside the service, and expired credentials do not count, because a later retry may succeed.
    """
    if not isinstance(error, ClientError) or status_of(error) >= _SERVER_FAULT or status_of(error) == _TIMED_OUT:
        return False
    return code_of(error) not in _OF_ITSELF | THROTTLED | _STALE_CREDENTIALS


def is_temporary(error: BaseException | None) -> bool:
    """Return whether the same request may succeed soon: it was throttled, failed inside AWS, or was not answered."""
    match error:
        case ClientError():
            return not is_refusal(error)
        case RoleIsNotAssumed():
            return error.code in THROTTLED
        case AwsConfigurationIsUnclear() | ParamValidationError() | NoCredentialsError() | NoRegionError():
            return False
        case _:
            return isinstance(error, BotoCoreError)


def error_in_words(error: Exception) -> str:
    """Return the error in a few words, without any message data."""
    if isinstance(error, ClientError):
        return f"{code_of(error)} ({_message(error)})" if _message(error) else code_of(error)
    if isinstance(error, ParamValidationError) or not isinstance(error, BotoCoreError):
        return type(error).__name__
    said = error.what if isinstance(error, AwsConfigurationIsUnclear) else str(error)
    return said[:_LONGEST_MESSAGE].rstrip(".")


def _cure(action: str, error: Exception) -> str:
    if not isinstance(error, ClientError):
        own = "Check the endpoint, the network and the credentials of this process."
        return error.cure if isinstance(error, RoleIsNotAssumed | AwsConfigurationIsUnclear) else own
    code = code_of(error)
    if "AccessDenied" in code:
        return f"Allow {action} on it, and the KMS rights of this action on its key, to the role of this process."
    if code in {"NonExistentQueue", "QueueDoesNotExist", "InvalidAddress", "NotFound", "ResourceNotFoundException"}:
        return "Check its name, account and region."
    if code in _STALE_CREDENTIALS or "Signature" in code:
        return "Renew the credentials of this process."
    if code.startswith(("KMS.", "Kms")) and code not in THROTTLED:
        return "Check the state and the policy of its KMS key."
    return "The next call tries again. If the error lasts, look at AWS's health page."


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))[:_LONGEST_MESSAGE].rstrip(".")


def status_of(error: ClientError) -> int:
    """Return the HTTP status of an error; 0 if it has none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _is_bad_certificate(error: Exception) -> bool:
    """Return whether this process rejected the server's certificate, so that nothing was sent.

    For other TLS errors, return False, because they may occur after something was sent.
    """
    inner: object = error.kwargs.get("error") if isinstance(error, SSLError) else None
    while isinstance(inner, BaseException):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return True
        inner = inner.args[0] if inner.args else None
    return False


@contextmanager
def reaching(target: QueueAddress | str, action: str, service: str = "sqs") -> Iterator[None]:
    """Raise AWS errors in the `with` block as QueueUnreachable.

    The error's text names the queue or ARN, the action, and what to do. `action`: the name of an AWS API call, such as
    SendMessage. `service`: the service's prefix in IAM policies, such as sqs.
    """
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise out_of_reach(target, action, error, service) from error


@contextmanager
def reaching_cloudwatch(target: str, action: str) -> Iterator[None]:
    """Raise AWS errors in the `with` block as CloudWatchUnreachable.

    The error's text names the target, the action, and what to do.
    """
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CloudWatchUnreachable(str(out_of_reach(target, action, error, "cloudwatch"))) from error
