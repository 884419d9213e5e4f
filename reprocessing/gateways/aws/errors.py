"""What a failed call means: did AWS get it, would another attempt end otherwise, and what is to be done."""

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

#: Refusals that speak of what one entry carries, of SQS, SNS and EventBridge. They may stand for a batch as a whole.
_OF_AN_ENTRY: Final = frozenset({
    "BatchRequestTooLong", "InvalidArgument", "InvalidAttributeName", "InvalidAttributeValue",
    "InvalidMessageContents", "InvalidParameter", "InvalidParameterCombination", "InvalidParameterValue",
    "MalformedDetail", "MissingParameter", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException",
    "RequestEntityTooLarge", "SerializationException", "ValidationException",
})  # fmt: skip
#: A service says of itself that it failed. What it did before that it does not say.
_OF_ITSELF: Final = frozenset({
    "InternalError", "InternalException", "InternalFailure", "InternalServerError", "InternalServerErrorException",
    "RequestTimeout", "ServiceException", "ServiceUnavailable",
})  # fmt: skip
_STALE_CREDENTIALS: Final = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
#: The connection never came to be, or nothing was ready to be written to it.
_BEFORE_ANYTHING_WENT_OUT: Final = (
    AwsConfigurationIsUnclear, ConnectTimeoutError, CredentialRetrievalError, EndpointConnectionError,
    NoCredentialsError, NoRegionError, PartialCredentialsError, ProxyConnectionError, RoleIsNotAssumed,
    TokenRetrievalError,
)  # fmt: skip
#: SNS says with the same code that a message and that its topic is wrong; no letter is poison for the latter.
_OF_THE_TOPIC: Final = "TopicArn"
#: Whose message quotes the value that it speaks of.
_QUOTING: Final = "ValidationException"
_SERVER_FAULT: Final = 500
_TOO_LARGE: Final = 413
_TIMED_OUT: Final = 408
_LONGEST_MESSAGE: Final = 500
NOTHING_WAS_SENT: Final = "nothing was sent: "


def code_of(error: ClientError) -> str:
    """The refusal's name, without the prefix that some of SQS's have."""
    code = str(error.response.get("Error", {}).get("Code", "Unknown"))
    return without_sqs_prefix(code)


def refusal_in_words(code: str) -> str:
    """One failed entry's code, for a reason that people read."""
    return f"SQS refused it: {without_sqs_prefix(code) or 'it did not say why'}"


def is_of_an_entry(error: Exception) -> bool:
    """Whether one entry can be to blame for what befell its whole batch, so that the others deserve another try."""
    if isinstance(error, ParamValidationError):
        return True
    if not isinstance(error, ClientError) or _OF_THE_TOPIC in _message(error):
        return False
    return code_of(error) in _OF_AN_ENTRY or status_of(error) == _TOO_LARGE


def outcome_of(error: Exception, service: str = "SQS") -> Outcome:
    """Return what a failed request to a service means for every letter in it.

    Refused: the service has nothing of it. NotSent: nothing was written. Unknown: everything else, so that a letter is
    never called refused while it may have been taken.
    """
    if isinstance(error, ParamValidationError):
        # The error's own text shows what the letter carries.
        return Refused("ParamValidation", f"It has a part that {service} has no form for.", poison=True)
    renew_credentials(error)
    if isinstance(error, ClientError):
        return _outcome_of_answer(error, service)
    if isinstance(error, _BEFORE_ANYTHING_WENT_OUT) or _is_bad_certificate(error):
        return NotSent(f"{NOTHING_WAS_SENT}{error_in_words(error)}", unreachable=True)
    return Unknown(f"no answer of {service} was had: {error_in_words(error)}")


def renew_credentials(error: Exception) -> None:
    """Where credentials have ended, let the next call's client read them again: botocore reads its files once."""
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
    return Refused(code, said, poison=is_of_an_entry(error))


def outcome_of_entry(code: str, message: str, service: str = "SQS") -> Outcome:
    """Return what a service says of one failed entry of a batch it otherwise took.

    The code decides: SenderFault is true of throttling too. A failure of its own is Unknown, since the same
    letter sent again under its old deduplication id is the cheaper mistake.
    """
    code = without_sqs_prefix(code)
    if code in _OF_ITSELF:
        return Unknown(f"{service} failed: {code}")
    return Refused(code, message[:_LONGEST_MESSAGE], poison=code in _OF_AN_ENTRY)


def out_of_reach(queue: QueueAddress | str, action: str, error: Exception, service: str = "sqs") -> QueueUnreachable:
    """Return the exception for a call that could not be done: to which queue or ARN, what for, and how to cure it."""
    name = queue if isinstance(queue, str) else queue.url
    renew_credentials(error)
    kind = QueueRequestRefused if is_refusal(error) else QueueUnreachable
    return kind(f"{name}: {action} failed: {error_in_words(error)}. {_cure(f'{service}:{action}', error)}")


def is_refusal(error: Exception) -> bool:
    """Whether AWS answered and said no, for good: not that it is busy, ails, or takes our credentials for old ones."""
    if not isinstance(error, ClientError) or status_of(error) >= _SERVER_FAULT or status_of(error) == _TIMED_OUT:
        return False
    return code_of(error) not in _OF_ITSELF | THROTTLED | _STALE_CREDENTIALS


def error_in_words(error: Exception) -> str:
    """Return the error in a few words that hold nothing of a letter."""
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
        return f"Allow {action} on it, and on its KMS key what the action needs, to the role of this process."
    if code in {"NonExistentQueue", "QueueDoesNotExist", "InvalidAddress", "NotFound", "ResourceNotFoundException"}:
        return "Check its name, account and region."
    if code in _STALE_CREDENTIALS or "Signature" in code:
        return "Renew the credentials of this process."
    if code.startswith(("KMS.", "Kms")) and code not in THROTTLED:
        return "Check the state and the policy of its KMS key."
    return "It is tried again with the next call; when it lasts, look at AWS's health page."


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))[:_LONGEST_MESSAGE].rstrip(".")


def status_of(error: ClientError) -> int:
    """Return the HTTP status of a refusal; 0 where it has none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _is_bad_certificate(error: Exception) -> bool:
    """Return whether the handshake failed; another TLS error may come after something was written."""
    inner: object = error.kwargs.get("error") if isinstance(error, SSLError) else None
    while isinstance(inner, BaseException):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return True
        inner = inner.args[0] if inner.args else None
    return False


@contextmanager
def reaching(target: QueueAddress | str, action: str, service: str = "sqs") -> Iterator[None]:
    """Raise an error of AWS in this block as QueueIsOutOfReach, with its cure."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise out_of_reach(target, action, error, service) from error


@contextmanager
def reaching_cloudwatch(target: str, action: str) -> Iterator[None]:
    """Raise an error of AWS in this block as CloudWatchIsOutOfReach, with its cure."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CloudWatchUnreachable(str(out_of_reach(target, action, error, "cloudwatch"))) from error
