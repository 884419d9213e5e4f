"""Who is told of what, what happened, and what of it was told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin import deeds, notification_sheet
from reprocessing.admin.deeds import Answer, Done, NotDone, Question
from reprocessing.admin.history import History
from reprocessing.domain.errors import NotificationIsUnclear
from reprocessing.models import Incident, Notification, NotificationRoute
from reprocessing.store.notifications import routes

REMOVE = "reprocessing.delete_notificationroute"


@admin.register(NotificationRoute)
class NotificationRoutes(History):
    """Destinations, and what each is told."""

    change_form_template = "reprocessing/admin/notification_route.html"
    list_display = ("destination", "events", "of_dlqs", "sent_at", "failures", "trouble", "next_at")
    ordering = ("destination",)
    sortable_by = ()

    @admin.display(description="events")
    def events(self, row: NotificationRoute) -> str:
        """What it is told."""
        return ", ".join(row.kinds) or "every event"

    @admin.display(description="dead-letter queues")
    def of_dlqs(self, row: NotificationRoute) -> str:
        """Of which dlqs."""
        return ", ".join(sorted(row.dlqs.values_list("name", flat=True))) or "every dlq, and the service as a whole"

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may add one."""
        return request.user.has_perm(notification_sheet.ADD)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the sheet of one, and the page that removes it."""
        return [
            path(
                "<int:route>/edit",
                self.admin_site.admin_view(notification_sheet.page),
                name="reprocessing_notificationroute_edit",
            ),
            path(
                "<int:route>/remove", self.admin_site.admin_view(_remove), name="reprocessing_notificationroute_remove"
            ),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where one is added."""
        return notification_sheet.page(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        user = request.user
        more = {"may_change": user.has_perm(notification_sheet.CHANGE), "may_remove": user.has_perm(REMOVE)}
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})


@admin.register(Incident)
class Incidents(History):
    """What happened, from its beginning to its end."""

    list_display = ("kind", "subject", "dlq", "times", "opened_at", "changed_at", "ended_at")
    list_filter = ("kind", "dlq")
    list_select_related = ("dlq",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Notification)
class Notifications(History):
    """What was told, is owed, or was given up."""

    list_display = ("incident", "route", "phase", "filed_at", "sent_at", "given_up_at")
    list_filter = ("route", "phase")
    list_select_related = ("incident", "route")
    ordering = ("-id",)
    sortable_by = ()


def _remove(request: HttpRequest, route: int) -> HttpResponse:
    row = NotificationRoute.objects.filter(pk=route).first()
    if row is None:
        raise Http404
    destination = row.destination

    def question() -> Question:
        there = reverse("admin:reprocessing_notificationroute_change", args=[route])
        says = (f"{destination} is told nothing more.", "What it is still owed is not sent.")
        return Question(f"Remove {destination}", "Remove it", says, seen=destination, back=there, about=destination)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        try:
            routes.remove_route(destination, by=by, reason=str(given["reason"]))
        except NotificationIsUnclear as error:
            return NotDone(str(error))
        return Done(reverse("admin:reprocessing_notificationroute_changelist"), f"{destination} is told nothing more.")

    return deeds.page(request, permission=REMOVE, question=question, act=act)
