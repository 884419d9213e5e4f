"""Lanes: where each ordering key stands; one is stopped, and let go on, on its page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.safety import stop_pages
from reprocessing.admin.safety.stop_pages import Act
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import Lane


@admin.register(Lane)
class Lanes(History):
    """Where each ordering key stands."""

    change_form_template = "reprocessing/admin/lane.html"
    list_display = ("id", "key", "dlq", "origin", "phase", "due_at", "why", "stopped_by")
    list_filter = ("dlq", "phase")
    list_select_related = ("dlq", "origin")
    search_fields = ("key__exact",)
    ordering = ("-id",)
    sortable_by = ()

    def get_urls(self) -> list[URLPattern]:
        """Django's, a lane's stop, and the end of that."""
        view = self.admin_site.admin_view(stop_pages.page)
        stops = [
            path(f"<int:lane>/{act}", view, {"kind": "lane", "act": act}, name=f"reprocessing_lane_{act}")
            for act in Act
        ]
        return [*stops, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        row = self.get_object(request, object_id)
        act = Act.RESUME if row is not None and row.stopped_at is not None else Act.STOP
        more = {
            "stop_words": "Let it go on…" if act is Act.RESUME else "Stop it…",
            "stop_address": row and reverse(f"admin:reprocessing_lane_{act}", args=[row.pk]),
            "may_stop": request.user.has_perm("reprocessing.stop_lane"),
        }
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})
