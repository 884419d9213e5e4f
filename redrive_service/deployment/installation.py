"""The values in which installations of the service differ: image, AWS account, variables, and names of secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from redrive_service.deployment.variables import secret_problem, variable_problem
from redrive_service.environment import EnvironmentIsIncomplete, read
from reprocessing.domain.errors import RedriveError

REQUIRED_SECRETS: Final = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL")
_ACCOUNT: Final = re.compile(r"\d{12}")
_IMAGE: Final = re.compile(r"[a-z0-9][\w.:/@-]*")
#: Example values of the required secrets. Only `check` uses them; no file shows them.
_STAND_INS: Final = {
    "SECRET_KEY": "x" * 50, "DATABASE_URL": "postgres://u:p@database.invalid/redrive", "REDIS_URL": "rediss://redis.invalid",
}  # fmt: skip


class InstallationIsUnusable(RedriveError):
    """A value of the installation cannot be used. The error says which value, and what to type instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The values of one installation.

    Attributes:
        image: the image with its tag or digest.
        account: the AWS account of the queues, 12 digits.
        region: the AWS region of the queues.
        host: the host name of the admin.
        more: additional environment variables (docs/production.md). They replace variables that this class sets.
        more_secrets: names of secrets in addition to `REQUIRED_SECRETS`.
    """

    image: str
    account: str
    region: str
    host: str
    more: Mapping[str, str]
    more_secrets: tuple[str, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that all processes get, without secrets."""
        queues = f"https://sqs.{self.region}.amazonaws.com/{self.account}/redrive"
        return {
            "ALLOWED_HOSTS": self.host,
            "AWS_DEFAULT_REGION": self.region,
            "BEHIND_TLS_PROXY": "yes",
            "LOG_FORMAT": "json",
            "REDRIVE_CAPTURE_QUEUE_URL": f"{queues}-capture",
            "REDRIVE_CONTROL_QUEUE_URL": f"{queues}-control",
            "REDRIVE_PROXY_COUNT": "1",
            "REDRIVE_PUBLIC_URL": f"https://{self.host}",
            "REDRIVE_REPLAY_QUEUE_URL": f"{queues}-replay",
            **self.more,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names of all variables that are secrets."""
        return tuple(dict.fromkeys((*REQUIRED_SECRETS, *self.more_secrets)))

    @property
    def tag(self) -> str:
        """Return the image's tag or, if it has none, the start of its digest, as a part of a Kubernetes name."""
        tag = self.image.rpartition("/")[2].partition("@sha256:")
        text = tag[2][:12] or tag[0].partition(":")[2] or "latest"
        return re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")[:40]

    def check(self) -> None:
        """Raise `InstallationIsUnusable` if the service could not start with these values."""
        if not _IMAGE.fullmatch(self.image):
            raise InstallationIsUnusable(f"{self.image!r} is no image. Type --image REGISTRY/NAME:TAG")
        if not _ACCOUNT.fullmatch(self.account):
            raise InstallationIsUnusable(f"{self.account!r} is no AWS account. Type --account with its 12 digits.")
        self._check_names()
        try:
            read(self.variables | _STAND_INS)
        except EnvironmentIsIncomplete as error:
            problems = "\n".join(line for line in str(error).splitlines() if line.startswith("  - "))
            raise InstallationIsUnusable(
                f"The service could not start with these variables:\n{problems}\n"
                "Correct --host, --region or --set NAME=VALUE."
            ) from error

    def _check_names(self) -> None:
        problems = [variable_problem(name, value) for name, value in self.more.items()]
        problems += map(secret_problem, self.more_secrets)
        problems += [
            f"{name} is given by --set and by --secret. Leave out one."
            for name in self.more_secrets
            if name in self.more
        ]
        if problem := next(filter(None, problems), ""):
            raise InstallationIsUnusable(problem)
