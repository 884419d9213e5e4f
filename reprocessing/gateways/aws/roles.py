"""Assume IAM roles, such as roles of other AWS accounts, and renew their credentials."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from reprocessing.domain.aws.iam_policy import ASSUMED_SESSION
from reprocessing.gateways.aws.configuration import AwsConfigurationIsUnclear, explain_configuration_errors
from reprocessing.gateways.aws.sessions import new_session

#: Session name of every assumed role in CloudTrail.
SESSION_NAME: Final = ASSUMED_SESSION
_SECONDS: Final = 5.0  #: timeout of a connection and of an answer, for each of 3 tries
_LONGEST_REASON: Final = 300


class RoleIsNotAssumed(BotoCoreError):
    """The role for a call could not be assumed, so no request was sent.

    Attributes:
        role: the ARN of the role.
        code: the error code of STS; empty if STS did not answer.
    """

    cure: Final = (
        "Check its ARN. Its trust policy must name the role of this process, which needs sts:AssumeRole on it."
    )

    fmt = "the role {role} could not be assumed: {why}"

    def __init__(self, role: str, why: str, code: str = "") -> None:
        super().__init__(role=role, why=why)
        self.role = role
        self.code = code


class AssumedRoleProvider:
    """Gives a botocore session the credentials of an assumed role, and renews them."""

    def __init__(self, role: str, region: str | None) -> None:
        self._role = role
        self._region = region

    def load_credentials(self) -> DeferredRefreshableCredentials:
        """Return credentials that are fetched for the first call, and renewed some minutes before they expire."""
        return DeferredRefreshableCredentials(refresh_using=self._assume, method="assume-role")

    def _assume(self) -> dict[str, Any]:
        try:
            # The process's own credentials are loaded each time: they may have been rotated since.
            core = new_session()
            own = core.get_credentials()
            if own is None:
                raise NoCredentialsError
            fetcher = AssumeRoleCredentialFetcher(
                partial(_client, core, region_name=self._region, config=_CONFIG),
                own,
                self._role,
                extra_args={"RoleSessionName": SESSION_NAME},
            )
            found: dict[str, Any] = fetcher.fetch_credentials()
        except ClientError as error:
            said = error.response.get("Error", {})
            code, message = str(said.get("Code", "Unknown")), str(said.get("Message", ""))[:_LONGEST_REASON].rstrip(".")
            raise RoleIsNotAssumed(self._role, f"{code} ({message})" if message else code, code) from error
        except AwsConfigurationIsUnclear:
            raise  # an error of the process's configuration, not of the role
        except BotoCoreError as error:
            raise RoleIsNotAssumed(self._role, str(error)[:_LONGEST_REASON].rstrip(".")) from error
        return found


def _client(core: Any, service: str, **options: Any) -> Any:  # noqa: ANN401 - botocore's own
    with explain_configuration_errors(service):
        return core.create_client(service, **options)


_CONFIG: Final = Config(
    connect_timeout=_SECONDS, read_timeout=_SECONDS, retries={"mode": "standard", "total_max_attempts": 3}
)
