"""If a form is submitted after the session ended, do nothing, and ask the person to sign in again.

The submitted values are lost. After the sign-in, the person gets the page of the form, or another page near it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

#: The parts of an admin URL: the application, the model, and the id of a row.
PLACE: Final = re.compile(r"/admin/(\w+)/(\w+)(?:/(\d+))?(?:/|\Z)", re.ASCII)
_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])
ENDED: Final = "Your session ended. Nothing was saved or done. Sign in, then repeat it."


def post_only(view: _View) -> _View:
    """Return the view, changed so that it accepts only POST requests.

    `sign_in_again` then does not lead to the view's URL, which a browser could not open with GET.
    """
    guarded = require_POST(view)
    vars(guarded)["is_post_only"] = True
    return guarded


def sign_in_again(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in page, which says that nothing was done. `_page_of_form` says which page follows."""
    messages.warning(request, ENDED)
    return redirect_to_login(_page_of_form(request), reverse("admin:login"))


def _page_of_form(request: HttpRequest) -> str:
    """Return the URL of the page that the person gets after the sign-in.

    It is the first that can be opened of these: the URL to which the form was submitted, the page that had the form,
    the page of the row, the list of the model, and the dashboard.
    """
    before = request.headers.get("Referer", "")
    parts = urlsplit(before) if url_has_allowed_host_and_scheme(before, {request.get_host()}) else None
    asked = [request.get_full_path()]
    if parts:
        asked.append(f"{parts.path}?{parts.query}" if parts.query else parts.path)
    return next(filter(_can_be_opened, [*asked, *_near(request.path)]), reverse("admin:index"))


def _can_be_opened(address: str) -> bool:
    try:
        found = resolve(urlsplit(address).path)
    except Resolver404:
        return False
    is_page = found.namespace == "admin" and found.url_name not in {"login", "logout"}
    return is_page and not getattr(found.func, "is_post_only", False)


def _near(path: str) -> list[str]:
    place = PLACE.match(path)
    if place is None:
        return []
    try:
        pages = [reverse(f"admin:{place[1]}_{place[2]}_change", args=[place[3]])] if place[3] else []
        return [*pages, reverse(f"admin:{place[1]}_{place[2]}_changelist")]
    except NoReverseMatch:
        return []
