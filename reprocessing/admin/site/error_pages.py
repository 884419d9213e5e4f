"""What the desk answers when it does not do what was asked: a page in its dress that says why, and the way back."""

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

from reprocessing.admin.messages.message_actions import Way

_LARGE: Final = (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent)
#: Whose page an address belongs to, and to which row of theirs.
_PLACE: Final = re.compile(r"/admin/(\w+)/(\w+)(?:/(\d+))?(?:/|\Z)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was done, and what to do instead."""

    title: str
    says: str


_DENIED: Final = Refusal("You may not do this", "It takes a permission that you do not have.")
_MISSING: Final = Refusal(
    "There is nothing here",
    "This address leads nowhere: it is mistyped, or what it was about is past its time and gone.",
)
_UNSURE: Final = Refusal(
    "This page is too old to be sent",
    "You logged in, or out, since you opened it, or no page of ours sent it. Go back, load it anew, and send it again.",
)
_SENT_ONLY: Final = Refusal(
    "This is done by a button", "This address takes what a page sends: open that page, and press its button there."
)
_SHOWN_ONLY: Final = Refusal("This page is only looked at", "It takes nothing that is sent to it.")
_TOO_LARGE: Final = Refusal(
    "This is too large",
    "Send less: a body that is to be edited may have 1 MiB, and at most 1,000 letters can be ticked; all that match a "
    "filter can be more.",
)
_NO_FILTER: Final = Refusal("This list has no such filter", "What it can be narrowed down to is on its page.")
_UNREADABLE: Final = Refusal("This could not be read", "What was sent is no form of these pages.")


def denied(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """403: it takes a permission."""
    return _page(request, _DENIED, 403)


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django's own
    """404: no such address, or no such row."""
    return _page(request, _MISSING, 404, row=False)


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400; where not even a host or a session could be read, Django's plain page, which asks nothing."""
    if not hasattr(request, "user"):
        return bad_request(request, exception)
    found = _UNREADABLE
    if isinstance(exception, _LARGE):
        found = _TOO_LARGE
    elif isinstance(exception, DisallowedModelAdminLookup):
        found = _NO_FILTER
    return _page(request, found, 400)


def unsure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001  Django's own
    """403: the form does not carry the mark of this person's session."""
    return _page(request, _UNSURE, 403)


def unsuited(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """405, with the methods that are allowed: what is sent was opened, or the other way round."""
    found = _SENT_ONLY if request.method in {"GET", "HEAD"} else _SHOWN_ONLY
    page = _page(request, found, 405)
    page.headers["Allow"] = answer.headers["Allow"]
    return page


def _page(request: HttpRequest, refusal: Refusal, status: int, *, row: bool = True) -> HttpResponse:
    context: dict[str, Any] = {
        **admin.site.each_context(request), "title": refusal.title, "refusal": refusal,
        "may_be_right": refusal is not _DENIED, "back": _back(request, row=row),
    }  # fmt: skip
    page = render(request, "reprocessing/admin/refusal.html", context, status=status)
    add_never_cache_headers(page)
    return page


def _back(request: HttpRequest, *, row: bool) -> list[Way]:
    """The nearest pages that there are: of the row, of its list, and the board."""
    place = _PLACE.match(request.path)
    found = []
    if place and row and place[3]:
        found.append(_way("Back to what it is about", f"admin:{place[1]}_{place[2]}_change", place[3]))
    if place:
        found.append(_way("Back to the list", f"admin:{place[1]}_{place[2]}_changelist"))
    return [*filter(None, found), Way("Back to the board", reverse("admin:index"))]


def _way(label: str, name: str, *given: str) -> Way | None:
    try:
        return Way(label, reverse(name, args=given))
    except NoReverseMatch:
        return None
