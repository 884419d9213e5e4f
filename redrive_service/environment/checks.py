"""Checks the names of environment variables, for `manage.py check --deploy`."""

from __future__ import annotations

import os
from typing import Any, Final

from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004  Django's name

from redrive_service.environment.known_variables import nearest_name, unknown_names

UNKNOWN: Final = "redrive_service.W004"


@register(Tags.security, deploy=True)
def misspelt_variables(**_: Any) -> list[CheckMessage]:  # noqa: ANN401  arguments of all checks
    """Return a warning for each environment variable that begins with REDRIVE_ but that the service does not read."""
    return [_warning(name, nearest_name(name)) for name in unknown_names(os.environ)]


def _warning(name: str, near: str) -> CheckMessage:
    hint = f"Did you mean {near}?" if near else "Unset it; docs/production.md lists the variables."
    return Warning(
        f"The environment variable {name} has no effect: the service does not know it.", hint=hint, id=UNKNOWN
    )
