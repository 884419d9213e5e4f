"""The project as a Django application."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class RedriveServiceConfig(AppConfig):
    """Makes our Celery application the current one wherever Django runs, so that every door can enqueue."""

    name = "redrive_service"

    def ready(self) -> None:
        from redrive_service import celery  # noqa: F401, PLC0415  # it reads the settings, which are ready only now


class DeskConfig(AdminConfig):
    """Django's admin, as the review desk."""

    default_site = "reprocessing.desk.Desk"
