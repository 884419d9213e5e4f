"""The Celery application: `celery -A redrive_service worker`, `celery -A redrive_service beat`."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun

from redrive_service.startup import explained

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

app = Celery("redrive_service")
with explained():
    app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
app.autodiscover_tasks()


@task_prerun.connect
@task_postrun.connect
def keep_connection(sender: Any = None, **_: Any) -> None:  # noqa: ANN401  a task, and the signal's other arguments
    """Close the connection to PostgreSQL if it is broken or older than CONN_MAX_AGE; else the next task uses it."""
    from django.db import close_old_connections  # noqa: PLC0415  Django is not set up yet

    if not getattr(getattr(sender, "request", None), "is_eager", False):
        close_old_connections()
