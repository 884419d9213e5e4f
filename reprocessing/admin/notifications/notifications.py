"""The lists and pages of notification destinations, of incidents, and of notifications about incidents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.notifications import notification_form
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import Page, RecordsAdmin
from reprocessing.domain.configuration.keys import Kind
from reprocessing.domain.errors import InvalidNotificationRoute
from reprocessing.models import Incident, Notification, NotificationRoute
from reprocessing.store.notifications import routes

REMOVE = "reprocessing.delete_notificationroute"


@admin.register(NotificationRoute)
class NotificationRoutes(ManagedAdmin):
    """The list and the pages of notification destinations, with the events that each destination receives."""

    managed_kind, name_field = Kind.NOTIFICATION, "destination"
    changing = ("edit", "remove")
    add_permission = notification_form.ADD
    list_display = ("destination", "events", "of_dlqs", "sent_at", "failures", "last_error", "next_at", "in_file")
    ordering = ("destination",)
    sortable_by = ()

    @admin.display(description="events")
    def events(self, row: NotificationRoute) -> str:
        """Return the kinds of events that a destination receives, as text."""
        return ", ".join(row.kinds) or "all events"

    @admin.display(description="dead-letter queues")
    def of_dlqs(self, row: NotificationRoute) -> str:
        """Return the names of the DLQs whose events a destination receives, as text."""
        return ", ".join(sorted(row.dlqs.values_list("name", flat=True))) or "all DLQs and the service itself"

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the form of a new destination."""
        return notification_form.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page that changes a destination, and the page that removes a destination."""
        return ("<int:route>/edit", notification_form.page, "edit", {}), ("<int:route>/remove", _remove, "remove", {})

    def buttons(self, request: HttpRequest, row: NotificationRoute) -> Iterable[Button]:
        """Return the buttons of a destination's page: change and remove."""
        for name, takes in (("edit", "change"), ("remove", "delete")):
            label, allows = ("Change…", "change") if name == "edit" else ("Remove…", "remove")
            address = reverse(f"admin:reprocessing_notificationroute_{name}", args=[row.pk])
            permission = (f"{takes}_notificationroute", f"{allows} notifications")
            yield button(request, label, address, permission, grave=name == "remove")


@admin.register(Incident)
class Incidents(RecordsAdmin):
    """The list of incidents, with start and end. An incident is a problem about which notifications are sent."""

    list_display = ("kind", "subject", "dlq", "times", "opened_at", "changed_at", "ended_at")
    list_filter = ("kind", "dlq")
    list_select_related = ("dlq",)


@admin.register(Notification)
class Notifications(RecordsAdmin):
    """The list of notifications: those that were sent, those that wait, and those that could not be sent."""

    list_display = ("incident", "route", "phase", "filed_at", "sent_at", "given_up_at")
    list_filter = ("route", "phase")
    list_select_related = ("incident", "route")


def _remove(request: HttpRequest, route: int) -> HttpResponse:
    destination = visible_rows.row_or_404(request, NotificationRoute.objects, route).destination

    def question() -> Question:
        address = reverse("admin:reprocessing_notificationroute_change", args=[route])
        says = (f"No more notifications are sent to {destination}.", "Notifications that wait to be sent are deleted.")
        return Question(f"Remove {destination}", "Remove", says, seen=destination, back=address, about=destination)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        try:
            routes.remove_route(destination, by=by, reason=str(given["reason"]))
        except InvalidNotificationRoute as error:
            return NotDone(str(error))
        address = reverse("admin:reprocessing_notificationroute_changelist")
        return Done(address, f"{destination} was removed: no more notifications are sent to it.")

    return confirmed_action.page(request, permission=REMOVE, question=question, act=act)
