"""Error pages of the admin: why nothing was done, and links back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils.cache import add_never_cache_headers
from django.views.defaults import bad_request

from reprocessing.admin.site.buttons import Button

_LARGE: Final = (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent)
#: The parts of an admin URL: the application, the model, and the id of a row.
_PLACE: Final = re.compile(r"/admin/(\w+)/(\w+)(?:/(\d+))?(?:/|\Z)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The content of an error page: why nothing was done, and what to do instead."""

    title: str
    says: str


_DENIED: Final = Refusal("Permission denied", "You do not have the permission for this action.")
_MISSING: Final = Refusal(
    "Not found", "There is no such page: the address is wrong, or the record was deleted after its retention."
)
_UNSURE: Final = Refusal(
    "This page has expired",
    "You logged in or out after you opened the form, or the form came from another site. Go back, reload the page, "
    "and submit the form again.",
)
_SENT_ONLY: Final = Refusal(
    "Use the button", "This address only accepts a form. Open the page of the form, and press the button there."
)
_SHOWN_ONLY: Final = Refusal("This page is read-only", "The page accepts no form.")
_TOO_LARGE: Final = Refusal(
    "Too much data",
    "An edited body may have at most 1 MiB, and at most 1,000 messages can be selected. To act on more messages, "
    "choose all that match the filter.",
)
_NO_FILTER: Final = Refusal("Unknown filter", "This list has no such filter. Use the filters on its page.")
_UNREADABLE: Final = Refusal("Invalid request", "The submitted data is not a form of this site.")


def denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """Answer 403: a permission is missing."""
    return _page(request, _DENIED, 403)


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """Answer 404: there is no such URL, or no such row."""
    return _page(request, _MISSING, 404, row=False)


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: the request or a filter cannot be read. Without a session, answer with Django's plain page."""
    if not hasattr(request, "user"):
        return bad_request(request, exception)
    found = _UNREADABLE
    if isinstance(exception, _LARGE):
        found = _TOO_LARGE
    elif isinstance(exception, DisallowedModelAdminLookup):
        found = _NO_FILTER
    return _page(request, found, 400)


def unsure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  Django's own
    """Answer 403: the CSRF token does not belong to this session."""
    return _page(request, _UNSURE, 403)


def unsuited(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """Answer 405 with an explanation. `answer` is Django's response, which lists the allowed HTTP methods."""
    found = _SENT_ONLY if request.method in {"GET", "HEAD"} else _SHOWN_ONLY
    page = _page(request, found, 405)
    page.headers["Allow"] = answer.headers["Allow"]
    return page


def _page(request: HttpRequest, refusal: Refusal, status: int, *, row: bool = True) -> HttpResponse:
    context: dict[str, Any] = {
        **admin.site.each_context(request), "title": refusal.title, "refusal": refusal,
        "may_be_right": refusal is not _DENIED, "back": _back(request, row=row),
    }  # fmt: skip
    page = render(request, "reprocessing/admin/error_page.html", context, status=status)
    add_never_cache_headers(page)
    return page


def _back(request: HttpRequest, *, row: bool) -> list[Button]:
    place = _PLACE.match(request.path)
    found = []
    if place and row and place[3]:
        found.append(_link("Back to the record", f"admin:{place[1]}_{place[2]}_change", place[3]))
    if place:
        found.append(_link("Back to the list", f"admin:{place[1]}_{place[2]}_changelist"))
    return [*filter(None, found), Button("Back to the dashboard", reverse("admin:index"))]


def _link(label: str, name: str, *given: str) -> Button | None:
    try:
        return Button(label, reverse(name, args=given))
    except NoReverseMatch:
        return None
