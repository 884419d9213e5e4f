"""The Django project: settings, the Celery application, beat, the broker and the sandbox."""
