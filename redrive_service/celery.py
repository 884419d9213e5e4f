"""The Celery application: `celery -A redrive_service worker`, `celery -A redrive_service beat`."""

from __future__ import annotations

import os

from celery import Celery

from redrive_service.startup import explained

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")

app = Celery("redrive_service")
with explained():
    app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
app.autodiscover_tasks()
