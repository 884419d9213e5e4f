"""Log one line for each request of a page. `settings.MIDDLEWARE` includes this only if logs are JSON."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

logger = logging.getLogger("redrive.web.access")


class AccessLogMiddleware:
    """Logs method, path, status and duration. The query string is left out: it may contain message contents."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer of the next middleware, and log it."""
        began = time.monotonic()
        answer = self._get_response(request)
        took = round((time.monotonic() - began) * 1000)
        fields = {"method": request.method, "path": request.path, "status": answer.status_code, "duration_ms": took}
        logger.info("%(method)s %(path)s %(status)d in %(duration_ms)d ms", fields, extra=fields)
        return answer
