"""What beat is told to send reaches its table whole."""

from __future__ import annotations

import pytest
from django.conf import settings
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import ModelEntry

from redrive_service.celery import app

pytestmark = pytest.mark.django_db


def test_a_tick_is_of_no_use_after_a_minute() -> None:
    ModelEntry.from_entry("tick", app=app, **settings.CELERY_BEAT_SCHEDULE["tick"])

    (stored,) = PeriodicTask.objects.values("task", "queue", "expire_seconds", "interval__every", "interval__period")
    assert stored == {
        "task": "reprocessing.tick",
        "queue": "redrive-control",
        "expire_seconds": 60,
        "interval__every": 1,  # in the sandbox; 2 in production
        "interval__period": "seconds",
    }


def test_every_scheduled_task_exists_and_goes_to_a_queue_of_ours() -> None:
    app.loader.import_default_modules()
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["task"] in app.tasks
        assert entry["options"]["queue"] in settings.ENVIRONMENT.queue_urls
