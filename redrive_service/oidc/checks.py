"""Checks how secure the sign-in settings are, for `manage.py check --deploy`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004  Django's name

_LONGEST_RECHECK: Final = timedelta(hours=4)
_SHORTEST_SECRET: Final = 16  # min characters of a secret; providers make 32 and more


@register(Tags.security, deploy=True)
def weak_sign_in(**_: Any) -> list[CheckMessage]:  # noqa: ANN401  arguments of all checks
    """Return warnings if people keep access after the provider removed them, or if the client secret is short."""
    oidc = settings.OIDC
    if oidc is None:
        return []
    found: list[CheckMessage] = []
    if settings.PASSWORD_LOGIN:
        found.append(
            Warning(
                "People can still sign in by password, also those whom the OpenID provider has removed.",
                hint="Set REDRIVE_PASSWORD_LOGIN=no.",
                id="redrive_service.W001",
            )
        )
    if not timedelta(0) < oidc.recheck <= _LONGEST_RECHECK:
        found.append(
            Warning(
                "A person whom the OpenID provider has removed stays signed in for more than four hours.",
                hint="Set REDRIVE_OIDC_RECHECK_MINUTES to 240 or less, but not to 0.",
                id="redrive_service.W002",
            )
        )
    if len(oidc.client_secret) < _SHORTEST_SECRET:
        found.append(
            Warning(
                f"The client secret of the OpenID provider has fewer than {_SHORTEST_SECRET} characters.",
                hint="Have the provider make a new one.",
                id="redrive_service.W003",
            )
        )
    return found
