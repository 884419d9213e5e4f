"""Minimal Django settings, with which `manage.py` shows help without environment variables and without servers.

`manage.py` uses these settings only for `help`, `--help` and `deployment_files`. They install the applications of
settings.py, except the admin and Celery.
"""

#: Applications that settings.py also installs. Both settings files list them after their own applications.
OTHER_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "django_celery_beat",
    "django_htmx",
]
INSTALLED_APPS = [
    "redrive_service.apps.CommandsConfig",
    "reprocessing.apps.ReprocessingConfig",
    "reprocessing.idempotency",
    *OTHER_APPS,
]
STATIC_URL = "static/"
USE_TZ = True
