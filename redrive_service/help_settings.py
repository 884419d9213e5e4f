"""Just enough Django to say what commands are for, where nothing is configured yet: nothing can be reached with these.

`manage.py` takes them for `help` and `--help` alone. The same applications as settings.py, but for the desk and Celery.
"""

INSTALLED_APPS = [
    "redrive_service.apps.CommandsConfig",
    "reprocessing.apps.ReprocessingConfig",
    "reprocessing.idempotency",
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
STATIC_URL = "static/"
USE_TZ = True
