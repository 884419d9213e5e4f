"""Targets: where letters go back to; one is added, and changed, on its sheet."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from reprocessing.admin.site.readonly_admin import History
from reprocessing.admin.targets import target_form
from reprocessing.models import Target


@admin.register(Target)
class Targets(History):
    """Where letters go back to."""

    change_form_template = "reprocessing/admin/target.html"
    list_display = ("__str__", "kind", "region", "fifo", "proof", "advance", "rate", "burst", "watched_by", "refires")
    list_filter = ("kind",)
    list_select_related = ("watched_by",)
    ordering = ("arn",)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may add one."""
        return request.user.has_perm(target_form.ADD)

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the sheet of one that is known."""
        view = self.admin_site.admin_view(target_form.page)
        return [path("<int:target>/edit", view, name="reprocessing_target_edit"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where one is added."""
        return target_form.page(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        row = self.get_object(request, object_id)
        breakers = list(row.breakers.select_related("rate_class").order_by("pk")) if row else []
        more = {"may_change": request.user.has_perm(target_form.CHANGE), "breakers": breakers}
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})
