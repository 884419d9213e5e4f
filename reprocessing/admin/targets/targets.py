"""List and pages of targets. The form in `target_form` adds and changes a target."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.text import Truncator

from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.readonly_admin import Page
from reprocessing.admin.targets import target_form
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import Target


@admin.register(Target)
class Targets(ManagedAdmin):
    """List and pages of targets."""

    managed_kind, name_field = Kind.TARGET, "arn"
    changing = ("edit",)
    add_permission = target_form.ADD
    list_display = (
        "__str__",
        "kind",
        "region",
        "fifo",
        "proof",
        "advance",
        "rate",
        "burst",
        "watched_by",
        "confirmed_fanout",
        "in_file",
    )
    list_filter = ("kind",)
    list_select_related = ("watched_by",)
    ordering = ("arn",)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the form of a new target."""
        return target_form.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page with a target's settings."""
        return (("<int:target>/edit", target_form.page, "edit", {}),)

    def buttons(self, request: HttpRequest, row: Target) -> Iterable[Button]:
        """Return the buttons of a target's page."""
        form = reverse("admin:reprocessing_target_edit", args=[row.pk])
        yield button(request, "Change…", form, ("change_target", "change targets"))
        for breaker in row.breakers.select_related("rate_class").order_by("pk"):
            name = f"Circuit breaker{f', {breaker.rate_class}' if breaker.rate_class else ''}"
            state = Truncator(breaker.get_state_display()).chars(30)
            yield Button(f"{name}: {state}", reverse("admin:reprocessing_breaker_change", args=[breaker.pk]))
