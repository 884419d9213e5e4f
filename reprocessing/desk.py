"""The review desk: Django's admin, with the board as its first page, and on every page where it is and what is stopped.

Its pages are in `admin/`, whose modules register with this site while they are imported: so they are imported late.
"""

from __future__ import annotations

from functools import update_wrapper
from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path

from reprocessing import conf
from reprocessing.models import stops


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
        return super().each_context(request) | {"place": here.place, "colour": here.colour, "halt": stop}

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The board, for those who may see dlqs; Django's list of what there is, for all."""
        from reprocessing.admin import board  # noqa: PLC0415  see above

        return super().index(request, board.of(request.user) | (extra_context or {}))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's, the board's figures by themselves, the stop of everything, and a person's rights."""
        from reprocessing.admin import board, halting, rights  # noqa: PLC0415  see above

        acts: list[URLPattern | URLResolver] = [
            path(act.value, self.admin_view(halting.page), {"act": act}, name=act.value) for act in halting.Act
        ]
        return [
            path("board", self.admin_view(board.figures), name="board"),
            path("rights", self.admin_view(rights.page), name="rights"),
            *acts,
            *super().get_urls(),
        ]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  Django's own
        """Django's; but what a page asks for by itself is refused when its person has left, never sent to log in."""
        guarded = super().admin_view(view, cacheable)

        def asked(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:  # noqa: ANN401  the view's own
            if request.headers.get("HX-Request") and not self.has_permission(request):
                return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            answer: HttpResponse = guarded(request, *args, **options)
            return answer

        return update_wrapper(asked, view)
