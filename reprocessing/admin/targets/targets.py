"""The list and the pages of targets, with buttons that change a target and show its circuit breakers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.text import Truncator

from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.readonly_admin import Page
from reprocessing.admin.targets import target_form
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import DeadLetterQueue, Target


@admin.register(Target)
class Targets(ManagedAdmin):
    """The list and the pages of targets."""

    managed_kind, name_field = Kind.TARGET, "arn"
    changing = ("edit",)
    add_permission = target_form.ADD
    adds_for_all = True
    list_display = (
        "__str__",
        "kind",
        "region",
        "fifo",
        "proof",
        "advance",
        "rate",
        "burst",
        "watcher",
        "confirmed_fanout",
        "in_file",
    )
    list_filter = ("kind",)
    ordering = ("arn",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Target]:
        """Return the targets. Each has the name of the DLQ that gets its failed messages, if this person sees it."""
        seen = visible_rows.rows(request, DeadLetterQueue.objects.filter(pk=OuterRef("watched_by")))
        targets: QuerySet[Target] = super().get_queryset(request)
        return targets.annotate(_watcher=Subquery(seen.values("name")))

    def get_fields(self, request: HttpRequest, obj: Target | None = None) -> Any:  # noqa: ANN401  Django's own
        """Return the fields of a target's page, with `watcher` in place of `watched_by`.

        `watched_by` is the DLQ that gets the target's failed messages, which this person may not see.
        """
        return ["watcher" if name == "watched_by" else name for name in super().get_fields(request, obj)]

    @admin.display(description=labels.FIELDS["watched_by"])
    def watcher(self, target: Target) -> str | None:
        """Return the name of the DLQ that gets the target's failed messages.

        None: the DLQ is not known, or this person may not see it.
        """
        name: str | None = getattr(target, "_watcher", None)
        return name

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the form of a new target."""
        return target_form.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page that changes a target's settings."""
        return (("<int:target>/edit", target_form.page, "edit", {}),)

    def buttons(self, request: HttpRequest, row: Target) -> Iterable[Button]:
        """Return the buttons of a target's page: one that changes the target, and one for each circuit breaker."""
        form = reverse("admin:reprocessing_target_edit", args=[row.pk])
        shared = visible_rows.is_shared(request, row)
        yield button(request, "Change…", form, ("change_target", "change targets"), shared=shared)
        for breaker in visible_rows.rows(request, row.breakers.select_related("rate_class").order_by("pk")):
            name = f"Circuit breaker{f', {breaker.rate_class}' if breaker.rate_class else ''}"
            state = Truncator(breaker.get_state_display()).chars(30)
            yield Button(f"{name}: {state}", reverse("admin:reprocessing_breaker_change", args=[breaker.pk]))
