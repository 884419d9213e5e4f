"""End a person's session at the OpenID provider (OpenID Connect RP-Initiated Logout 1.0)."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.auth import BACKEND_SESSION_KEY
from django.http import HttpRequest
from django.urls import reverse

from redrive_service.oidc.backend import BACKEND
from redrive_service.oidc.metadata import metadata, provider
from redrive_service.oidc.refusals import SignInRefused


def address(request: HttpRequest) -> str:
    """Return the URL that ends the person's session at the provider.

    The text is empty if the person signed in by password, or if the provider has no such URL or does not answer.
    """
    if request.session.get(BACKEND_SESSION_KEY) != BACKEND:
        return ""
    try:
        place = metadata().end_session_endpoint
    except SignInRefused:  # the person is signed out of this service anyway
        return ""
    parameters = {
        "client_id": provider().client_id,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse("admin:login")),
        "id_token_hint": request.session.get("oidc_id_token"),
    }
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{place}{'&' if '?' in place else '?'}{query}" if place else ""
