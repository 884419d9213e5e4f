"""The application's name for Django, and what it refuses to migrate."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.management import CommandError
from django.db.models.signals import pre_migrate


class ReprocessingConfig(AppConfig):
    """Dead letters and what became of them."""

    name = "reprocessing"
    verbose_name = "Dead letters"

    def ready(self) -> None:
        pre_migrate.connect(_refuse_halfway, sender=self, dispatch_uid="reprocessing: migrations that are halfway")


def _refuse_halfway(**_: Any) -> None:  # noqa: ANN401  what the signal says
    """Nothing is migrated that Django would leave as it is, and call whole."""
    from reprocessing.models import server  # noqa: PLC0415  # there are no models before the applications are ready

    if missing := server.halfway():
        raise CommandError(
            f"This database stopped halfway through migrations that are one by now: it lacks {', '.join(missing)}. "
            "Migrate it with the version of this service that has them as files, and then with this one."
        )
