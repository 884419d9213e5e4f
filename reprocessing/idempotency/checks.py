"""Django system checks of settings.REDRIVE_IDEMPOTENCY, and of the `keep` that decorated functions set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # a class of Django
from django.db import connections

from reprocessing.idempotency import conf
from reprocessing.idempotency.decorator import keep_by_space
from reprocessing.idempotency.errors import InvalidIdempotencySettings


@register
def settings_are_clear(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:  # noqa: ANN401, ARG001  # Django's signature
    """Return errors and warnings about settings.REDRIVE_IDEMPOTENCY and the `keep` of decorated functions.

    An empty list means that there are none. `keep` is how long results are stored. A `keep` below 28 days causes a
    warning, because a message may be redriven later.
    """
    try:
        view = conf.current_settings()
        kept = {"REDRIVE_IDEMPOTENCY": view.keep} | {
            f'The space "{space}"': conf.read_duration(keep, f'keep of the space "{space}"', most=conf.LONGEST_KEEP)
            for space, keep in keep_by_space.items()
        }
    except InvalidIdempotencySettings as error:
        return [Error(str(error), id="redrive_idempotency.E001")]
    return [*_databases(view.database), *_memories(kept)]


def _databases(alias: str) -> Iterator[CheckMessage]:
    if alias not in connections:
        yield Error(f'REDRIVE_IDEMPOTENCY["DATABASE"] names "{alias}", which is not in DATABASES.',
                    id="redrive_idempotency.E002")  # fmt: skip
    elif connections[alias].vendor != "postgresql":
        yield Error(f'Claims need PostgreSQL, and "{alias}" is {connections[alias].display_name}.',
                    id="redrive_idempotency.E003")  # fmt: skip


def _memories(kept: dict[str, timedelta]) -> Iterator[CheckMessage]:
    for who, keep in kept.items():
        if keep < conf.LEAST_KEEP:
            yield Warning(
                f"{who} forgets finished work after {keep.total_seconds() / 86_400:.3g} days. A message may come "
                f"later: SQS keeps it for {conf.RETENTION_LIMIT.days} days, and a redriven message for as long again.",
                hint=f"Keep claims for {conf.LEAST_KEEP.days} days or longer.",
                id="redrive_idempotency.W001",
            )
