"""The admin site with this service's sign-in: by password, by an OpenID provider, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import autodiscover
from django.core.checks import CheckMessage
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from reprocessing.admin_site import RedriveAdminSite


class ServiceAdminSite(RedriveAdminSite):
    """The app's admin with this service's sign-in and sign-out.

    `redrive_service.oidc` is imported only if an OpenID provider is set.
    """

    login_template = "redrive_service/login.html"

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Import the modules of all admin pages, and return the URLs of the pages."""
        autodiscover()
        return super().get_urls()

    def check(self, app_configs: Sequence[AppConfig] | None) -> list[CheckMessage]:
        """Import the modules of all admin pages, and return the problems that Django's system checks find in them."""
        autodiscover()
        return super().check(app_configs)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Return the sign-in page. If passwords are switched off, refuse a submitted password."""
        if not settings.PASSWORD_LOGIN and request.method not in {"GET", "HEAD"}:
            from redrive_service.oidc import refusals, views  # noqa: PLC0415  not needed without a provider

            return views.page(request, refusals.NO_PASSWORDS)
        ways = {"provider": settings.OIDC, "passwords": settings.PASSWORD_LOGIN}
        return super().login(request, ways | (extra_context or {}))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """End the session here. If the OpenID provider can end its session, too, return a page that opens its URL.

        A redirect to the provider would not work, because the form-action of the content security policy allows forms
        to be sent only to this host.
        """
        there = ""
        if settings.OIDC and request.method == "POST":
            from redrive_service.oidc import leaving  # noqa: PLC0415  not needed without a provider

            there = leaving.address(request)
        answer = super().logout(request, extra_context)
        if not there:
            return answer
        context = {**self.each_context(request), "title": "Signing out", "provider": settings.OIDC, "there": there}
        page = TemplateResponse(request, "redrive_service/signing_out.html", context)
        add_never_cache_headers(page)
        return page
