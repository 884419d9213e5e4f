"""The project as a Django application."""

from __future__ import annotations

from typing import Any, Final

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

#: Who freezes inside a transaction holds rows before which others stand. PostgreSQL ends its session after so long:
#: inside of one, nothing of ours waits for anything but PostgreSQL.
IDLE_AT_MOST: Final = "30s"


class RedriveServiceConfig(AppConfig):
    """Makes our Celery application the current one wherever Django runs, so that every door can enqueue."""

    name = "redrive_service"

    def ready(self) -> None:
        from redrive_service import celery  # noqa: F401, PLC0415  # it reads the settings, which are ready only now

        connection_created.connect(_let_go, dispatch_uid="redrive_service: idle_in_transaction_session_timeout")


def _let_go(connection: BaseDatabaseWrapper, **_: Any) -> None:  # noqa: ANN401  what the signal says besides
    """By a statement: a pooler may refuse what is said as the session begins."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [IDLE_AT_MOST])


class CommandsConfig(AppConfig):
    """The project's commands alone, for `manage.py help` where nothing is configured."""

    name = "redrive_service"


class DeskConfig(AdminConfig):
    """Django's admin, as the review desk."""

    default_site = "reprocessing.admin_site.RedriveAdminSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib import admin  # noqa: PLC0415  its forms need the models, which are there only now

        from redrive_service.sign_in import SignInForm  # noqa: PLC0415  as above

        admin.site.login_form = SignInForm
