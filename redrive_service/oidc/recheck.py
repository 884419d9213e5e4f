"""Let the OpenID provider confirm at intervals, during a session, that the person still has access."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from django.contrib.auth import BACKEND_SESSION_KEY, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from redrive_service.oidc.backend import BACKEND
from redrive_service.oidc.metadata import provider
from redrive_service.oidc.refusals import UNCONFIRMED
from redrive_service.oidc.views import ENDS_AT, RECHECK_AT, page

#: Seconds for which a session whose confirmation is due may still submit forms. After them, forms are refused.
GRACE: Final = 600.0
_ROOT: Final = "/admin/"


class RecheckMiddleware:
    """Redirects a request for a page to the provider when the provider must confirm the session.

    The provider confirms the session without showing a page (`prompt=none`). A submitted form cannot be redirected. It
    is still accepted for 10 minutes (`GRACE`), and then refused.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the page. If the session must be confirmed, return a redirect to the provider, or refuse the form."""
        return self._question(request) or self._get_response(request)

    def _question(self, request: HttpRequest) -> HttpResponse | None:
        here = request.path_info.startswith(_ROOT) and request.path_info != reverse("admin:logout")
        if not here or request.session.get(BACKEND_SESSION_KEY) != BACKEND:
            return None
        now = time.time()  # noqa: TID251  where a request gets its time
        if now >= request.session.get(ENDS_AT, 0):
            logout(request)
            return None
        overdue = now - request.session.get(RECHECK_AT, 0)
        return _asked(request, overdue) if provider().recheck and overdue >= 0 else None


def _asked(request: HttpRequest, overdue: float) -> HttpResponse | None:
    if request.method not in {"GET", "HEAD"}:
        return page(request, UNCONFIRMED) if overdue >= GRACE else None
    is_page = request.headers.get("Sec-Fetch-Dest", "document") == "document" and "HX-Request" not in request.headers
    if not is_page:  # a part of a page cannot be redirected to the provider: htmx reloads the page
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED, headers={"HX-Refresh": "true"})
    where = {"silent": "yes", "next": request.get_full_path()}
    return HttpResponseRedirect(f"{reverse('oidc_begin')}?{urlencode(where)}")
