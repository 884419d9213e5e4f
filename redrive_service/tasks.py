"""Celery tasks of the project that belong to no Django application."""

from __future__ import annotations

from importlib import import_module

from axes.models import AccessAttempt
from celery import shared_task
from django.conf import settings
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now


@shared_task(name="redrive_service.forget_sign_ins")
def forget_sign_ins(**_future: object) -> None:
    """Delete expired sessions, and records of wrong passwords that are too old to lock a user name."""
    ended = ExpressionWrapper(Now() - Value(settings.AXES_COOLOFF_TIME), output_field=DateTimeField())
    AccessAttempt.objects.filter(attempt_time__lt=ended).delete()
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
