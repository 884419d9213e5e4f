"""The review desk: Django's admin, with the board as its first page, and on every page where it is and what is stopped.

Its pages are in `admin/`, whose modules register with this site while they are imported: so they are imported late.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import update_wrapper
from http import HTTPStatus
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse

from reprocessing import conf
from reprocessing.store.safety import stops


@dataclass(frozen=True, slots=True)
class List:
    """A link of every page; `here`: this page is there, or below."""

    words: str
    address: str
    here: bool


#: The lists that every page leads to, in the order in which people need them.
_LISTS: Final = (
    ("Groups", "lettergroup"),
    ("Parking lot", "parkedletter"),
    ("Letters", "deadletter"),
    ("Runs", "run"),
    ("Operations", "operation"),
    ("Dead-letter queues", "deadletterqueue"),
    ("Targets", "target"),
    ("Rules", "rule"),
    ("Breakers", "breaker"),
    ("Lanes", "lane"),
    ("Notifications", "notificationroute"),
    ("Audit", "review"),
)


class Desk(admin.AdminSite):
    """Where people see, understand and settle dead letters."""

    site_header = site_title = "Redrive"
    index_title = "Board"
    index_template = "reprocessing/admin/board.html"
    site_url = None
    enable_nav_sidebar = False

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Django's, the place that this service is for, and the stop of everything, if there is one."""
        here = conf.current()
        stop = stops.stopped(None) if self.has_permission(request) else None
        told = {"place": here.place, "colour": here.colour, "halt": stop, "desk_lists": self.lists(request)}
        return super().each_context(request) | told

    def lists(self, request: HttpRequest) -> list[List]:
        """Where this person can go from every page."""
        if not self.has_permission(request):
            return []
        board = reverse("admin:index")
        found = [List("Board", board, request.path == board)]
        for words, model in _LISTS:
            registered = self.is_registered(apps.get_model("reprocessing", model))
            if registered and request.user.has_perm(f"reprocessing.view_{model}"):
                address = reverse(f"admin:reprocessing_{model}_changelist")
                found.append(List(words, address, request.path.startswith(address)))
        return found

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The board, for those who may see dlqs; Django's list of what there is, for all."""
        from reprocessing.admin.dashboard import dashboard  # noqa: PLC0415  see above

        return super().index(request, dashboard.whole(request.user) | (extra_context or {}))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's, the board's figures by themselves, the stop of everything, a letter's edit, a person's rights."""
        from reprocessing.admin.dashboard import dashboard, hourly_chart  # noqa: PLC0415  see above
        from reprocessing.admin.messages import edit  # noqa: PLC0415  see above
        from reprocessing.admin.safety import stop_pages  # noqa: PLC0415  see above
        from reprocessing.admin.site import permissions  # noqa: PLC0415  see above

        acts: list[URLPattern | URLResolver] = [
            path(act.value, self.admin_view(stop_pages.page), {"kind": "everything", "act": act}, name=act.value)
            for act in stop_pages.Act
        ]
        return [
            path("board", self.admin_view(dashboard.figures), name="board"),
            path("hours", self.admin_view(hourly_chart.page), name="hours"),
            path("reprocessing/parkedletter/<int:letter>/edit", self.admin_view(edit.page), name="parkedletter_edit"),
            path("rights", self.admin_view(permissions.page), name="rights"),
            *acts,
            *super().get_urls(),
        ]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  Django's own
        """Django's; but what a page asks for by itself is refused when its person has left, never sent to log in.

        What is sent is never opened, and what is opened never sent to: whoever tries is shown the way back.
        """
        from reprocessing.admin.site import error_pages  # noqa: PLC0415  see above

        guarded = super().admin_view(view, cacheable)

        def asked(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:  # noqa: ANN401  the view's own
            if request.headers.get("HX-Request") and not self.has_permission(request):
                return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            answer: HttpResponse = guarded(request, *args, **options)
            is_bare = answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
            return error_pages.unsuited(request, answer) if is_bare else answer

        return update_wrapper(asked, view)
