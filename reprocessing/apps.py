"""The Django application."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import DEFAULT_DB_ALIAS


class ReprocessingConfig(AppConfig):
    """Redrive of dead-letter queues."""

    name = "reprocessing"
    verbose_name = "Dead letters"

    def ready(self) -> None:
        checks.register(_stopped_halfway, checks.Tags.database)


def _stopped_halfway(*, databases: Collection[str] | None = None, **_: Any) -> list[checks.Error]:  # noqa: ANN401  Django's
    """Report a database that an interrupted migration left incomplete."""
    from reprocessing.pipeline.maintenance.doctor import database  # noqa: PLC0415  # no models before the applications are ready

    found = database.unfinished_migrations() if DEFAULT_DB_ALIAS in (databases or ()) else None
    return [] if found is None else [checks.Error(f"{found.what} {found.why}", hint=found.cure, id="redrive.E001")]
