"""The web server's entry: `gunicorn redrive_service.wsgi`."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from redrive_service.startup import explained

WORKER_BOOT_ERROR = 3  # gunicorn's own: it gives up at this status and would start the worker again at any other

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")
with explained(exit_status=WORKER_BOOT_ERROR):
    application = get_wsgi_application()
