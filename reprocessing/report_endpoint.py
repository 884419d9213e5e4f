"""The endpoint `POST /reports`, where consumers with a token report whether they processed messages."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from http import HTTPStatus

from django.http import HttpRequest, JsonResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.models import Reporter
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.store import rows
from reprocessing.store.outcomes import reporters

logger = logging.getLogger(__name__)

#: Max bytes of one request, and max reports in one request.
MAX_BYTES, MAX_REPORTS = 1_048_576, 500

dice = random.SystemRandom().random


class _Refused(Exception):
    """Raised to refuse a request. The exception has the HTTP status, error text and headers of the response."""

    def __init__(self, status: HTTPStatus, why: str, **headers: str) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


@csrf_exempt  # a token authenticates the request, not a cookie
def reports(request: HttpRequest) -> JsonResponse:
    """Record the reports of one request; respond with JSON: how many were accepted, repeated or refused.

    A repeated report is recorded once. The text of a report is not logged, because it may quote a message.
    """
    try:
        _check_request(request)
        reporter = _reporter(request)
        said = _said(request)
        recorded = record_reports.record_json(said, reporter=reporter.pk, dice=dice)
    except _Refused as refusal:
        return JsonResponse({"error": str(refusal)}, status=refusal.status, headers=refusal.headers)
    except rows.OUTAGES as error:
        logger.warning("Reports were not recorded: %s", str(error).partition("\n")[0])
        why = "Nothing was recorded: PostgreSQL cannot be reached. Send the request again; nothing is recorded twice."
        return JsonResponse({"error": why}, status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "5"})
    except PayloadUnreadable as error:
        logger.warning("Reports were not recorded: %s", error)
        why = "Nothing was recorded: payload keys are not available. Send the request again; nothing is recorded twice."
        return JsonResponse({"error": why}, status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "5"})
    logger.info(
        "%s reported: %d accepted, %d repeated, %d refused",
        reporter.name, recorded.accepted, recorded.repeated, len(recorded.refused),
    )  # fmt: skip
    refused = [{"index": place, "why": why} for place, why in recorded.refused.items()]
    return JsonResponse({"accepted": recorded.accepted, "repeated": recorded.repeated, "refused": refused})


def _check_request(request: HttpRequest) -> None:
    """Raise `_Refused` for a request with a wrong method, content type or length."""
    if request.method != "POST":
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Send reports with POST.", Allow="POST")
    if request.content_type != "application/json" or request.headers.get("Content-Encoding", "identity") != "identity":
        why = "Send reports as uncompressed JSON, with Content-Type: application/json."
        raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
    length = request.headers.get("Content-Length", "")
    if not length:
        why = "The request has no Content-Length. Send this header; chunked requests are not read."
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, why)
    if length.isdecimal() and (len(length) > len(str(MAX_BYTES)) or int(length) > MAX_BYTES):
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)


_TOO_LARGE = f"A request has at most {MAX_BYTES:,} bytes. Send fewer reports at once."


def _reporter(request: HttpRequest) -> Reporter:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    found = reporters.by_token(token.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        why = "No reporter has this token. Send Authorization: Bearer TOKEN, with the token that add_reporter printed."
        raise _Refused(HTTPStatus.UNAUTHORIZED, why, **{"WWW-Authenticate": "Bearer"})
    if found.revoked_at is not None:
        another = f"manage.py add_reporter {found.name} --new-token --confirm"
        why = f"The token of {found.name} was revoked. To create another: {another}"
        raise _Refused(HTTPStatus.FORBIDDEN, why)
    return found


def _said(request: HttpRequest) -> Sequence[JsonValue]:
    try:
        body = request.read(MAX_BYTES + 1)
    except (UnreadablePostError, OSError):
        raise _Refused(HTTPStatus.BAD_REQUEST, "The request ended before its Content-Length.") from None
    if len(body) > MAX_BYTES:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
    match json_view.read(body, halves=True):  # a consumer may cut a text inside a surrogate pair
        case Unreadable(why):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"The body cannot be read: {why}.")
        case {"reports": list(said), **other} if not other:
            if len(said) > MAX_REPORTS:
                why = f"A request has at most {MAX_REPORTS} reports; this one has {len(said):,}."
                raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
            return said
        case _:
            raise _Refused(HTTPStatus.BAD_REQUEST, 'The body must be an object with one list: {"reports": [...]}.')
