"""What holds letters back, to be looked at: breakers, waves, and the checks of targets' health."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.safety import breaker_actions
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import Breaker, HealthCheck, Wave


@admin.register(Breaker)
class Breakers(History):
    """Whether letters may go, and how many a second; moved by hand on its page, or by manage.py reset_breaker."""

    change_form_template = "reprocessing/admin/breaker.html"
    list_display = ("id", "target", "rate_class", "state", "since", "why", "retry_at", "ramp", "ramp_why")
    list_filter = ("state",)
    list_select_related = ("target", "rate_class")
    ordering = ("id",)
    sortable_by = ()

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the deeds."""
        view = self.admin_site.admin_view(breaker_actions.page)
        return [path("<int:breaker>/<slug:move>/now", view, name="reprocessing_breaker_deed"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        row = self.get_object(request, object_id)
        address = "admin:reprocessing_breaker_deed"
        able = [(one, reverse(address, args=[row.pk, one])) for one in breaker_actions.possible(row)] if row else []
        more = {"able": able, "may_reset": request.user.has_perm(breaker_actions.PERMISSION)}
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})


@admin.register(Wave)
class Waves(History):
    """How many letters of a run went before it was known how those went."""

    list_display = ("id", "run", "no", "size", "opened_at", "settled_at", "touched", "failed")
    list_select_related = ("run",)
    search_fields = ("run__name__exact",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(HealthCheck)
class HealthChecks(History):
    """What a target must answer before letters go there. `manage.py check_health` adds and removes."""

    list_display = ("id", "target", "kind", "subject", "ceiling", "verdict", "detail", "checked_at")
    list_filter = ("kind", "verdict")
    list_select_related = ("target",)
    ordering = ("id",)
    sortable_by = ()
