"""The Celery application: `celery -A redrive_service worker`, `celery -A redrive_service beat`."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, after_setup_task_logger
from celery.utils.log import get_multiprocessing_logger
from django.conf import settings

from redrive_service.log_format import formatter
from redrive_service.startup import explained

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

app = Celery("redrive_service")
with explained():
    app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
app.autodiscover_tasks()


@after_setup_logger.connect
@after_setup_task_logger.connect
def format_logs(logger: logging.Logger, **options: Any) -> None:  # noqa: ANN401  the signals' other arguments
    """Replace Celery's formatters in worker and beat: a record's content could forge lines. Its text looks the same."""
    pool = get_multiprocessing_logger()
    for handler in (*logger.handlers, *(pool.handlers if pool else ())):
        handler.setFormatter(formatter(settings.ENVIRONMENT.log_format, options["format"]))
