"""Answer each error below /api/ as application/problem+json, also the errors that Django itself finds."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from reprocessing.api.site import problems

_PREFIX: Final = "/api/"
_DETAILS: Final = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read. Check its host, path, query and headers.",
    HTTPStatus.NOT_FOUND: "There is no such address. The addresses are in /api/v1/openapi.json.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The address does not allow this method. The header Allow has the methods.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The service has a fault, which its log describes. Send the request again with "
    "the same Idempotency-Key; if the answer is the same, tell the operators the time of the request.",
}  # fmt: skip
_KEPT: Final = ("Allow", "Retry-After", "WWW-Authenticate")


class ApiMiddleware:
    """Replaces error pages below /api/ by application/problem+json, and forbids caches to store answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer of the next middleware; for a path below /api/, an error as application/problem+json."""
        given = self._get_response(request)
        if not request.path_info.startswith(_PREFIX):
            return given
        answer = given
        if given.status_code >= HTTPStatus.BAD_REQUEST and given.headers.get("Content-Type") != problems.MEDIA_TYPE:
            detail = _DETAILS.get(HTTPStatus(given.status_code), HTTPStatus(given.status_code).phrase)
            kept = {name: given.headers[name] for name in _KEPT if name in given.headers}
            answer = problems.answer(given.status_code, detail, headers=kept)
            answer.headers["Content-Length"] = str(len(answer.content))
        answer.headers["Cache-Control"] = "no-store"
        return answer
