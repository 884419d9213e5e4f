"""The admin site: Django's admin, with the dashboard as first page and a navigation and stop banner on every page.

The modules of `admin/` register their pages with this site when they are imported, so this module imports them only
inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, update_wrapper
from http import HTTPStatus
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.text import capfirst

from reprocessing import conf
from reprocessing.domain.approvals.requested_action import ApprovalRefused
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.store.safety import stops


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """A link of the navigation: its label (`words`) and its URL (`address`).

    `here`: whether the current page is the linked page, or a page below it.
    """

    words: str
    address: str
    here: bool


#: Models whose lists are opened rarely: the navigation has them in its menu "More".
_RARE: Final = frozenset({"discoveredqueue", "lane", "notificationroute", "policy", "managedobject", "apitoken"})
#: The lists in the navigation, each with its label and its model, in the order in which they are shown.
_LISTS: Final = (
    ("Failure groups", "failuregroup"), ("Parking lot", "parkedletter"), ("Messages", "letter"), ("Runs", "run"),
    ("Bulk actions", "bulkaction"), ("Dead-letter queues", "deadletterqueue"), ("Discover", "discoveredqueue"),
    ("Targets", "target"), ("Rules", "rule"),
    ("Circuit breakers", "breaker"), ("Key queues", "lane"), ("Notifications", "notificationroute"),
    ("Policies", "policy"), ("Configuration file", "managedobject"), ("API tokens", "apitoken"),
    ("Audit log", "auditentry"),
)  # fmt: skip


class RedriveAdminSite(admin.AdminSite):
    """The admin site, where people see the messages of DLQs and decide about parked messages."""

    site_header = site_title = "Redrive"
    index_title = "Dashboard"
    index_template = "reprocessing/admin/dashboard.html"
    site_url = None
    enable_nav_sidebar = False

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the values that the template of every page gets: Django's own, and those of this admin.

        This admin adds the environment's name and colour, the links of the navigation, and `halt`: who stopped all
        sends, when and why. `halt` is None if sends are not stopped, or if nobody is signed in.
        """
        here = conf.current()
        stop = stops.stop_of(None) if self.has_permission(request) else None
        navigation, rare = self.lists(request)
        own = {"place": here.place, "colour": here.colour, "halt": stop, "navigation": navigation, "more_pages": rare}
        return super().each_context(request) | own

    def lists(self, request: HttpRequest) -> tuple[list[NavigationLink], list[NavigationLink]]:
        """Return the links of the navigation, and the links of its menu "More"; both are empty if nobody is signed in.

        A list of rows, such as the DLQs, is linked only if the person may see it.
        """
        if not self.has_permission(request):
            return [], []
        dashboard = reverse("admin:index")
        found, rare = [NavigationLink("Dashboard", dashboard, request.path == dashboard)], list[NavigationLink]()
        for words, model in _LISTS:
            registered = self.is_registered(apps.get_model("reprocessing", model))
            if registered and request.user.has_perm(f"reprocessing.view_{model}"):
                address = reverse(f"admin:reprocessing_{model}_changelist")
                link = NavigationLink(words, address, request.path.startswith(address))
                (rare if model in _RARE else found).append(link)
        return found, rare

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:  # noqa: ANN401  a lazy list
        """Return Django's list of apps and their models, with the model names that users see in this admin.

        The returned list is computed only when a template reads it, because Django asks for the list on every page, and
        few pages show it.
        """
        return SimpleLazyObject(partial(self._app_list, request, app_label))

    def _app_list(self, request: HttpRequest, app_label: str | None) -> list[Any]:
        from reprocessing.admin.site import labels  # noqa: PLC0415  see above

        found = super().get_app_list(request, app_label)
        for model in (model for app in found for model in app["models"]):
            model["name"] = capfirst(labels.plural(model["model"]._meta))  # noqa: SLF001  Django's public name for it
        return found

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Return the first page: the dashboard for people who may see DLQs, and the list of all pages for everybody."""
        from reprocessing.admin.dashboard import dashboard  # noqa: PLC0415  see above

        return super().index(request, dashboard.dashboard_context(request) | (extra_context or {}))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the URLs of Django's pages, and of pages that belong to no model (dashboard, search)."""
        from reprocessing.admin.dashboard import dashboard, dlq_page, hourly_chart  # noqa: PLC0415  see above
        from reprocessing.admin.editing import edit  # noqa: PLC0415  see above
        from reprocessing.admin.safety import stop_pages  # noqa: PLC0415  see above
        from reprocessing.admin.search import search_page  # noqa: PLC0415  see above
        from reprocessing.admin.site import permissions  # noqa: PLC0415  see above

        acts: list[URLPattern | URLResolver] = [
            path(act.value, self.admin_view(stop_pages.page), {"kind": "everything", "act": act}, name=act.value)
            for act in stop_pages.StopAct
        ]
        return [
            path("board", self.admin_view(dashboard.figures_view), name="board"),
            path("board/<int:dlq>", self.admin_view(dlq_page.page), name="board_dlq"),
            path("hours", self.admin_view(hourly_chart.page), name="hours"),
            path("reprocessing/parkedletter/<int:letter>/edit", self.admin_view(edit.page), name="parkedletter_edit"),
            path("search", self.admin_view(search_page.page), name="search"),
            path("rights", self.admin_view(permissions.page), name="rights"),
            *acts,
            *super().get_urls(),
        ]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  Django's own
        """Wrap a view with Django's sign-in check, and replace some of its responses.

        If the person is not signed in any more, a request of htmx gets status 401: htmx would put Django's sign-in page
        into the current page. A submitted form then gets a sign-in page, which says that nothing was done.

        The person sees a page with an explanation if the view answers with status 405 (method not allowed), if a
        payload cannot be decrypted, or if an approval is refused.
        """
        from reprocessing.admin.site import error_pages, session_end  # noqa: PLC0415  see above

        guarded = super().admin_view(view, cacheable)

        def checked(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:  # noqa: ANN401  the view's own
            if request.headers.get("HX-Request") and not self.has_permission(request):
                return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            is_out = request.method == "POST" and request.user.is_anonymous
            if is_out and request.path != reverse("admin:logout"):
                return session_end.sign_in_again(request)
            try:
                answer: HttpResponse = guarded(request, *args, **options)
            except (PayloadUnreadable, ApprovalRefused) as error:
                return error_pages.refused(request, error)
            is_bare = answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED
            return error_pages.unsuited(request, answer) if is_bare else answer

        return update_wrapper(checked, view)
