"""Django as small as can be, for beats that tests start: the schedule's tables in a database of their own."""

from __future__ import annotations

import json
import os

import environ

from redrive_service.broker.configuration import celery_settings

SECRET_KEY = "sandbox"
INSTALLED_APPS = ["django_celery_beat"]
DATABASES = {"default": environ.Env.db_url_config(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"

ALIVE_FILE = ""
globals().update(celery_settings(queue_urls=json.loads(os.environ["BEAT_QUEUES"]), region="us-east-1"))
CELERY_BEAT_SCHEDULER = "redrive_service.beat:LeaderScheduler"
CELERY_BEAT_SCHEDULE = {"tick": {"task": "ticking.tick", "schedule": 1.0, "options": {"queue": "ticks"}}}
