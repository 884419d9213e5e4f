"""The error pages of the admin.

Each page says why the request was refused, and links to the record, the list and the dashboard.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.cache import add_never_cache_headers
from django.views.defaults import bad_request

from reprocessing.admin.site.buttons import Button
from reprocessing.admin.site.session_end import PLACE
from reprocessing.domain.approvals.requested_action import ApprovalRefused
from reprocessing.domain.errors import PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.store import rows

_LARGE: Final = (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The content of an error page: its title, and sentences about why nothing was done and what to do instead."""

    title: str
    says: str


_DENIED: Final = Refusal("Permission denied", "You do not have the permission for this action.")
_MISSING: Final = Refusal(
    "Not found",
    "There is no page at this address: the address is wrong, or the record was deleted after its retention.",
)
_UNSURE: Final = Refusal(
    "This page has expired",
    "You logged in or out after you opened the form, or the form came from another site. Go back, reload the page, "
    "and submit the form again.",
)
_SENT_ONLY: Final = Refusal(
    "Use the button", "This address accepts only submitted forms. Open the page with the form, and press its button."
)
_SHOWN_ONLY: Final = Refusal("This page is read-only", "This page only shows data. It accepts no submitted form.")
_TOO_LARGE: Final = Refusal(
    "Too much data",
    "An edited body may have at most 1 MiB, and at most 1,000 messages can be selected. To act on more messages, "
    "choose all that match the filter.",
)
_NO_FILTER: Final = Refusal(
    "Unknown filter", "The list has no filter of this name. Use the filters on the page of the list."
)
_OUTAGE: Final = Refusal(
    "PostgreSQL cannot be reached",
    "Reload the page in a minute. If you submitted a form, look first whether the change was made: it was made fully "
    "or not at all.",
)
_FAILED: Final = Refusal(
    "This page failed",
    "This is an error of the service. The log of the web server has its traceback. If you submitted a form, look "
    "whether the change was made before you submit it again.",
)
_UNREADABLE: Final = Refusal("Invalid request", "The submitted data is not a form of this site.")


def denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """Return the error page (403) for a person who lacks a permission."""
    return _page(request, _DENIED, 403)


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """Return the error page (404) for a URL that does not exist, or a row that does not exist or is hidden."""
    return _page(request, _MISSING, 404, row=False)


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the error page (400) for a request that is too large, cannot be read, or has an unknown filter.

    If the error came before the session was read, return Django's plain page.
    """
    if not hasattr(request, "user"):
        return bad_request(request, exception)
    found = _UNREADABLE
    if isinstance(exception, _LARGE):
        found = _TOO_LARGE
    elif isinstance(exception, DisallowedModelAdminLookup):
        found = _NO_FILTER
    return _page(request, found, 400)


def unsure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  Django's own
    """Return the error page (403) for a form that failed Django's CSRF check."""
    return _page(request, _UNSURE, 403)


def unsuited(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """Return the error page (405) for a request with an HTTP method that the URL does not accept.

    `answer`: the response that Django would send. Its header Allow lists the accepted methods.
    """
    found = _SENT_ONLY if request.method in {"GET", "HEAD"} else _SHOWN_ONLY
    page = _page(request, found, 405)
    page.headers["Allow"] = answer.headers["Allow"]
    return page


def refused(request: HttpRequest, error: PayloadUnreadable | ApprovalRefused) -> HttpResponse:
    """Return the error page for a refused action: status 503 if keys of encrypted payloads are missing, else 409."""
    status = 503 if isinstance(error, PayloadKeyUnavailable) else 409
    return _page(request, Refusal("Refused", str(error).removeprefix("Nothing was done: ")), status)


def failed(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  Django's own
    """Return the error page for an exception of a view: status 503 if PostgreSQL cannot be used, else 500.

    The page needs no database, so it has no session, person or navigation.
    """
    is_outage = isinstance(sys.exception(), rows.OUTAGES)
    refusal = _OUTAGE if is_outage else _FAILED
    text = render_to_string("reprocessing/admin/failure.html", {"title": refusal.title, "says": refusal.says})
    page = HttpResponse(text, status=503 if is_outage else 500, headers={"Retry-After": "10"} if is_outage else {})
    add_never_cache_headers(page)
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
    place = PLACE.match(request.path)
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
