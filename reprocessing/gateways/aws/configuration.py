"""Explain errors in the AWS configuration (environment and files) because of which no client can be created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ConfigParseError,
    CredentialRetrievalError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

from reprocessing.domain.errors import QueueUnreachable

_LONGEST_REASON: Final = 300
#: Beginning of botocore's ValueError about an endpoint. The rest of its text may contain a password.
_INVALID_ENDPOINT: Final = "Invalid endpoint"
#: The NAME in AWS_ENDPOINT_URL_<NAME>, by boto3's name of the service, if the two names differ.
_SUFFIXES: Final = {"events": "EVENTBRIDGE"}


class AwsConfigurationIsUnclear(QueueUnreachable, BotoCoreError):
    """The AWS configuration of this process cannot be used, so no request was sent.

    The exception is both a QueueUnreachable and a BotoCoreError, so that handlers of either class catch it.

    Attributes:
        what: what is wrong, without the full stop.
        cure: what to do, as a sentence.
    """

    fmt = "{what}. {cure}"

    def __init__(self, what: str, cure: str) -> None:
        BotoCoreError.__init__(self, what=what, cure=cure)
        self.what = what
        self.cure = cure


@contextmanager
def explain_configuration_errors(service: str = "") -> Iterator[None]:
    """Raise AwsConfigurationIsUnclear if the `with` block fails to create a session, or a client of `service`."""
    try:
        yield
    except (BotoCoreError, ValueError, OSError) as error:
        what, cure = _said(error, service)
        raise AwsConfigurationIsUnclear(f"No client of AWS can be made: {what}", cure) from None


def _said(error: Exception, service: str) -> tuple[str, str]:
    said = str(error)[:_LONGEST_REASON].rstrip(".")
    if isinstance(error, ValueError) and said.startswith(_INVALID_ENDPOINT):
        variable = f"AWS_ENDPOINT_URL_{_SUFFIXES.get(service, service.upper())}"
        return (
            f"the endpoint that this process was given for {service} is no URL that begins with https:// or http://",
            f"Correct or unset {variable} and AWS_ENDPOINT_URL, or endpoint_url in AWS's configuration file.",
        )
    match error:
        case ProfileNotFound():
            cure = "Correct or unset AWS_PROFILE; profiles are in the files of AWS_CONFIG_FILE and ~/.aws."
        case ConfigParseError():
            cure = "Correct that file, or have AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name others."
        case PartialCredentialsError():
            cure = "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither."
        case CredentialRetrievalError() | TokenRetrievalError():
            cure = "Check the network and the credentials of this process."
        case _:
            cure = "Correct the variables of this process that begin with AWS_, or AWS's configuration file."
    return said, cure
