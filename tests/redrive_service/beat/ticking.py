"""The Celery application of the beats that tests start: `celery -A tests.redrive_service.beat.ticking beat`."""

from __future__ import annotations

from celery import Celery

app = Celery("ticking")
app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
