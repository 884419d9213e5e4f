"""The URLs of the web server: admin, sign-in by a provider, `/reports` and the HTTP API."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from reprocessing.api.urls import api
from reprocessing.report_endpoint import reports

# All error pages are those of the admin.
handler400 = "reprocessing.admin.site.error_pages.unreadable"
handler403 = "reprocessing.admin.site.error_pages.denied"
handler404 = "reprocessing.admin.site.error_pages.missing"
handler500 = "reprocessing.admin.site.error_pages.failed"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    *([path("", include("redrive_service.oidc.urls"))] if settings.OIDC else []),
    path("reports", reports),
    path("api/v1/", api.urls),
    # Browsers request this address for answers that name no icon, such as JSON.
    path("favicon.ico", RedirectView.as_view(url=lazy(static, str)("reprocessing/icon.svg"))),
]
