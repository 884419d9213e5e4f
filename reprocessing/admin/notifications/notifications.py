"""Admin pages of notification routes, incidents and notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.notifications import notification_form
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import History
from reprocessing.domain.errors import NotificationIsUnclear
from reprocessing.models import Incident, Notification, NotificationRoute
from reprocessing.store.notifications import routes

REMOVE = "reprocessing.delete_notificationroute"


@admin.register(NotificationRoute)
class NotificationRoutes(History):
    """Destinations, and the events of each."""

    change_form_template = "reprocessing/admin/notification_route.html"
    list_display = ("destination", "events", "of_dlqs", "sent_at", "failures", "trouble", "next_at")
    ordering = ("destination",)
    sortable_by = ()

    @admin.display(description="events")
    def events(self, row: NotificationRoute) -> str:
        """Return the events of a route."""
        return ", ".join(row.kinds) or "all events"

    @admin.display(description="dead-letter queues")
    def of_dlqs(self, row: NotificationRoute) -> str:
        """Return the dlqs of a route."""
        return ", ".join(sorted(row.dlqs.values_list("name", flat=True))) or "all dlqs and the service itself"

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may add one."""
        return request.user.has_perm(notification_form.ADD)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the sheet of one, and the page that removes it."""
        return [
            path(
                "<int:route>/edit",
                self.admin_site.admin_view(notification_form.page),
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
        """Show the form for a new destination."""
        return notification_form.page(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a route with its buttons."""
        user = request.user
        more = {"may_change": user.has_perm(notification_form.CHANGE), "may_remove": user.has_perm(REMOVE)}
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
    """Notifications that were sent, wait to be sent, or were given up."""

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
        says = (f"Nothing more is sent to {destination}.", "Notifications that wait to be sent there are deleted.")
        return Question(f"Remove {destination}", "Remove it", says, seen=destination, back=there, about=destination)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        try:
            routes.remove_route(destination, by=by, reason=str(given["reason"]))
        except NotificationIsUnclear as error:
            return NotDone(str(error))
        there = reverse("admin:reprocessing_notificationroute_changelist")
        return Done(there, f"Nothing more is sent to {destination}.")

    return confirmed_action.page(request, permission=REMOVE, question=question, act=act)
