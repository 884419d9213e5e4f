"""`POST /reports`: what consumers say of single messages, from those that hold a reporter's token."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from http import HTTPStatus

from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, JsonResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.models import Reporter
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.store.outcomes import reporters

logger = logging.getLogger(__name__)

#: Bytes, and reports, that one call may bring.
LARGEST, MOST = 1_048_576, 500

dice = random.SystemRandom().random


class _Refused(Exception):
    """The call is answered with this status and this sentence."""

    def __init__(self, status: HTTPStatus, why: str, **headers: str) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


@csrf_exempt  # who calls brings a token, and no cookie
def reports(request: HttpRequest) -> JsonResponse:
    """Hear the reports of one call; one that is repeated changes nothing. Nothing of what was said is logged."""
    try:
        _judge(request)
        reporter = _reporter(request)
        said = _said(request)
        heard = record_reports.told(said, reporter=reporter.pk, dice=dice)
    except _Refused as refusal:
        return JsonResponse({"error": str(refusal)}, status=refusal.status, headers=refusal.headers)
    except (OperationalError, InterfaceError, InternalError) as error:
        logger.warning("reports were not heard: %s", str(error).partition("\n")[0])
        why = "Nothing was kept: the database is out of reach. Send it again; what was kept before is not kept twice."
        return JsonResponse({"error": why}, status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "5"})
    logger.info(
        "%s reported: %d accepted, %d repeated, %d refused",
        reporter.name, heard.accepted, heard.repeated, len(heard.refused),
    )  # fmt: skip
    refused = [{"index": place, "why": why} for place, why in heard.refused.items()]
    return JsonResponse({"accepted": heard.accepted, "repeated": heard.repeated, "refused": refused})


def _judge(request: HttpRequest) -> None:
    """What can be seen without a database: the method, the form, the size that is announced."""
    if request.method != "POST":
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Reports are sent by POST.", Allow="POST")
    if request.content_type != "application/json" or request.headers.get("Content-Encoding", "identity") != "identity":
        why = "Reports are JSON, neither compressed nor in another form: Content-Type: application/json."
        raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
    length = request.headers.get("Content-Length", "")
    if not length:
        why = "The call does not say how long it is, and chunks are not read. Send Content-Length."
        raise _Refused(HTTPStatus.LENGTH_REQUIRED, why)
    if length.isdecimal() and (len(length) > len(str(LARGEST)) or int(length) > LARGEST):
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)


_TOO_LARGE = f"A call brings {LARGEST:,} bytes at most. Send fewer reports at once."


def _reporter(request: HttpRequest) -> Reporter:
    """Whose token the call brings."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    found = reporters.of(token.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        why = (
            "No reporter has this token. Send Authorization: Bearer TOKEN, with what the command add_reporter printed."
        )
        raise _Refused(HTTPStatus.UNAUTHORIZED, why, **{"WWW-Authenticate": "Bearer"})
    if found.revoked_at is not None:
        another = f"manage.py add_reporter {found.name} --new-token --confirm"
        why = f"The token of {found.name} was revoked. For another: {another}"
        raise _Refused(HTTPStatus.FORBIDDEN, why)
    return found


def _said(request: HttpRequest) -> Sequence[JsonValue]:
    try:
        body = request.read(LARGEST + 1)
    except (UnreadablePostError, OSError):
        raise _Refused(HTTPStatus.BAD_REQUEST, "The call broke off before its end.") from None
    if len(body) > LARGEST:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
    match json_view.read(body, halves=True):  # who cuts a text may halve a character; one report's fault is no other's
        case Unreadable(why):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"The body cannot be read: {why}.")
        case {"reports": list(said), **other} if not other:
            if len(said) > MOST:
                why = f"A call brings {MOST} reports at most, and these are {len(said):,}."
                raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
            return said
        case _:
            raise _Refused(HTTPStatus.BAD_REQUEST, 'The body is to be an object of one list: {"reports": [...]}.')
