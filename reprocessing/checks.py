"""The app's system check for `manage.py check --deploy`: whether payloads are encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Info, Tags, register

from reprocessing import conf
from reprocessing.domain.errors import InvalidSettings

NOT_ENCRYPTED: Final = "redrive.I001"


@register(Tags.security, deploy=True)
def payloads_are_encrypted(
    app_configs: Sequence[AppConfig] | None,  # noqa: ARG001  Django's own signature
    **_: Any,  # noqa: ANN401  as above
) -> list[CheckMessage]:
    """Return a notice if no payload key is set, so that message bodies are stored unencrypted; else an empty list."""
    try:
        encrypted = bool(conf.current().payload_keys)
    except InvalidSettings:
        return []  # invalid settings are reported where they are used
    if encrypted:
        return []
    return [
        Info(
            "Payloads are stored readable in PostgreSQL: REDRIVE_PAYLOAD_KEYS is not set.",
            hint="To encrypt them, make a key with openssl rand -base64 32, and set REDRIVE_PAYLOAD_KEYS=NAME=KEY "
            "(docs/payloads.md).",
            id=NOT_ENCRYPTED,
        )
    ]
