"""The Django application of the project: its start-up, and its admin site."""

from __future__ import annotations

from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

#: PostgreSQL ends a session that is idle inside a transaction for this long, because its row locks block others. Only a
#: process that hangs is idle so long: inside a transaction, processes wait for nothing but PostgreSQL.
IDLE_AT_MOST: Final = "30s"


class RedriveServiceConfig(AppConfig):
    """Sets this project's Celery application in every Django process, so that each process can send tasks."""

    name = "redrive_service"

    def ready(self) -> None:
        from redrive_service import celery  # noqa: F401, PLC0415  # it reads the settings, which are ready only now
        from redrive_service.environment import checks as environment_checks  # noqa: F401, PLC0415  it registers a check

        if settings.ENVIRONMENT.traces:
            from redrive_service.telemetry import tracing  # noqa: PLC0415  OpenTelemetry is optional

            tracing.start()
        if settings.OIDC:
            from redrive_service.oidc import checks  # noqa: F401, PLC0415  it registers checks of the sign-in settings
        connection_created.connect(
            _limit_idle_transactions, dispatch_uid="redrive_service: idle_in_transaction_session_timeout"
        )


def _limit_idle_transactions(connection: BaseDatabaseWrapper, **_: Any) -> None:  # noqa: ANN401  other arguments of the signal
    """Set PostgreSQL's `idle_in_transaction_session_timeout` to 30 s (`IDLE_AT_MOST`) for a new connection.

    A statement sets the limit, because a connection pooler may refuse the limit as an option of the connection.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, false)", [IDLE_AT_MOST])


class CommandsConfig(AppConfig):
    """Registers only the project's management commands, for `manage.py help` without environment variables."""

    name = "redrive_service"


class ServiceAdminConfig(SimpleAdminConfig):
    """Django's admin, with this service's sign-in form.

    The modules of the pages are imported only when URLs are read. The import takes 0.3 s, and workers, beat and most
    commands do not need the pages.
    """

    default_site = "redrive_service.admin_site.ServiceAdminSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib import admin  # noqa: PLC0415  its forms need the models, which are there only now

        from redrive_service.sign_in import SignInForm  # noqa: PLC0415  it needs the models, too

        admin.site.login_form = SignInForm
