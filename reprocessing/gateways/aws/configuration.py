"""What the environment and AWS's files say of AWS, where no session or client can be made of it."""

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
#: How botocore begins, in a ValueError, to say so of an endpoint; what follows may carry a password.
_INVALID_ENDPOINT: Final = "Invalid endpoint"
#: What ends the names of the variables for one service, where it is not the client's own name.
_SUFFIXES: Final = {"events": "EVENTBRIDGE"}


class AwsConfigurationIsUnclear(QueueUnreachable, BotoCoreError):
    """No call can be made: the AWS configuration of this process cannot be used. Nothing went out.

    Whoever catches what a call may raise catches it, too.

    Attributes:
        what: what is wrong, without the full stop.
        cure: what to do.
    """

    fmt = "{what}. {cure}"

    def __init__(self, what: str, cure: str) -> None:
        BotoCoreError.__init__(self, what=what, cure=cure)
        self.what = what
        self.cure = cure


@contextmanager
def explain_configuration_errors(service: str = "") -> Iterator[None]:
    """Have what fails while a session, or a client of this service, is made say how it is cured.

    Raises:
        AwsConfigurationIsUnclear: it failed.
    """
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
