"""Configure the Django app `reprocessing.idempotency`."""

from __future__ import annotations

from django.apps import AppConfig


class IdempotencyConfig(AppConfig):
    """Django's configuration of this app. The app needs no other app of this project."""

    name = "reprocessing.idempotency"
    label = "redrive_idempotency"
    verbose_name = "Idempotency"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from reprocessing.idempotency import checks  # noqa: F401, PLC0415  # registers the system checks
