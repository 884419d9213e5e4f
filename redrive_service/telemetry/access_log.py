"""Logs one line for each request of a page. In text, the proxy's access log has to do: see `settings.MIDDLEWARE`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

logger = logging.getLogger("redrive.web.access")


class AccessLogMiddleware:
    """Logs method, path, status and duration. The query is left out: people search for keys and contents."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer of the next middleware, and log it."""
        began = time.monotonic()
        answer = self._get_response(request)
        took = round((time.monotonic() - began) * 1000)
        told = {"method": request.method, "path": request.path, "status": answer.status_code, "duration_ms": took}
        logger.info("%(method)s %(path)s %(status)d in %(duration_ms)d ms", told, extra=told)
        return answer
