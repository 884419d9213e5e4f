"""Check each request before its operation runs: token, rate limit, scope, query and idempotency key.

A repeated request with the same idempotency key gets the stored answer, and its operation does not run again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from http import HTTPStatus
from typing import Any, Final, assert_never

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils.crypto import salted_hmac
from ninja.responses import NinjaJSONEncoder
from pydantic import BaseModel

from reprocessing.api.site import problems
from reprocessing.api.site.caller import Caller, admit, caller_of
from reprocessing.api.site.problems import Problem
from reprocessing.domain.api.scopes import Scope
from reprocessing.store import rows
from reprocessing.store.api import calls, tokens
from reprocessing.store.api.calls import Answered, InProgress, Leased, OtherRequest

KEY_HEADER: Final = "Idempotency-Key"
#: An idempotency key: 1 to 255 printable ASCII characters without spaces.
KEY_PATTERN: Final = "[!-~]{1,255}"
_KEY: Final = re.compile(KEY_PATTERN)
_JSON: Final = "application/json"
_LEASE: Final = "_redrive_lease"  #: the attribute of a request with the lease of its idempotency key
_STORED: Final = "_redrive_stored"  #: the attribute of a request with the answer that was stored with its change

Run = Callable[..., HttpResponse]


def guarded(scope: Scope, *, changes: bool) -> Callable[[Run], Run]:
    """Return a decorator that checks each request before an operation that needs this scope runs.

    `changes`: whether the operation may change something. Then the request's idempotency key is used.
    """

    def guard(run: Run) -> Run:
        known, lists = _query_names(run)

        @wraps(run)
        def answer(request: HttpRequest, **path: Any) -> HttpResponse:  # noqa: ANN401  values of the path
            try:
                if not changes:
                    caller = admit(request, scope, key=None)
                    _check_query(request, known, lists)
                    tokens.record_use(caller.token.pk, reads=True)
                    return run(request, **path)
                caller = admit(request, scope, key=_key(request))
                _check_query(request, known, lists)
                tokens.record_use(caller.token.pk, reads=False)
                return _answer_once(request, caller, lambda: run(request, **path))
            except Problem as problem:
                return problems.refused(problem)
            except rows.OUTAGES as error:
                return problems.unavailable(error)

        return answer

    return guard


def acts(request: HttpRequest, *, confirm: bool) -> bool:
    """Return whether to make the change (True) or a dry run (False).

    Raises:
        Problem: `confirm` is true, but the request has no idempotency key. If the answer were lost and the client
            repeated such a request, the change could be made twice.
    """
    if confirm and caller_of(request).key is None:
        why = (
            f"Nothing was done: a request with confirm: true needs the header {KEY_HEADER}, so that a repetition does "
            "nothing twice. Send a new UUID as its value, and the same one if you repeat the request."
        )
        raise Problem(HTTPStatus.BAD_REQUEST, why)
    return confirm


def store_with_change(request: HttpRequest, answer: BaseModel) -> None:
    """Store the answer to a request in the transaction of its change, so that both are committed, or none is.

    If the process is then killed, and the client repeats the request, the stored answer is returned, and the change is
    not made twice. Call this function last in the transaction.

    Raises:
        Problem: this request took too long, and a repetition of the request has taken over; roll back the transaction.
    """
    held: Leased | None = getattr(request, _LEASE, None)
    if held is None:
        return
    content = json.dumps(answer.model_dump(), cls=NinjaJSONEncoder).encode()
    if not calls.store_answer(held, HTTPStatus.OK, content):
        raise _in_progress()
    setattr(request, _STORED, content)


def _query_names(run: Run) -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets of names: of all query parameters of the operation, and of those that may be repeated.

    `run` is a bound method of a django-ninja `Operation`.
    """
    models = [model for model in run.__self__.models if model.__ninja_param_source__ == "query"]  # type: ignore[attr-defined]  # see above
    names = frozenset(name for model in models for name in model.__ninja_flatten_map__)
    return names, frozenset(name for model in models for name in model.__ninja_collection_fields__)


def _check_query(request: HttpRequest, known: frozenset[str], lists: frozenset[str]) -> None:
    """Check the query parameters of a request. Otherwise, a misspelt filter condition would be ignored.

    `known`: names of the parameters that exist. `lists`: names of the parameters that may be repeated.

    Raises:
        Problem: the query has an unknown parameter, or repeats a parameter that is not a list.
    """
    if unknown := sorted(set(request.GET) - known):
        there_are = f"The parameters are: {', '.join(sorted(known))}." if known else "There are none."
        why = f"Nothing was done: there is no parameter {unknown[0][:60]!a} in the query. {there_are}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, why)
    if repeated := sorted(name for name, values in request.GET.lists() if len(values) > 1 and name not in lists):
        why = (
            f"Nothing was done: the parameter {repeated[0]} is repeated in the query, and is not a list. Send it once."
        )
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, why)


def _key(request: HttpRequest) -> str | None:
    key = request.headers.get(KEY_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        why = f"Nothing was done: {KEY_HEADER} must be 1 to 255 printable ASCII characters without spaces. Send a UUID."
        raise Problem(HTTPStatus.BAD_REQUEST, why)
    return key


def _body(request: HttpRequest) -> bytes:
    if request.content_type != _JSON:
        why = f"Nothing was done: the body is not JSON. Send JSON, with Content-Type: {_JSON}."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why)
    try:
        return request.body
    except RequestDataTooBig:
        why = "Nothing was done: the body is too large. Send fewer ids at once."
        raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why) from None
    except UnreadablePostError:
        why = "Nothing was done: the request ended before its Content-Length. Send it again."
        raise Problem(HTTPStatus.BAD_REQUEST, why) from None


def _answer_once(request: HttpRequest, caller: Caller, run: Callable[[], HttpResponse]) -> HttpResponse:
    body = _body(request)
    if caller.key is None:
        return run()
    what = f"{request.method} {request.get_full_path()}\n".encode(errors="surrogateescape")
    digest = salted_hmac("redrive: API request", what + body, algorithm="sha256").digest()
    claim = calls.lease_key(caller.token.pk, caller.key, digest)
    match claim:
        case Leased():
            setattr(request, _LEASE, claim)
            return _run_leased(request, claim, run)
        case Answered(status, answer):
            return HttpResponse(answer, status=status, content_type=_JSON, headers={"Idempotency-Replayed": "true"})
        case InProgress():
            raise _in_progress()
        case OtherRequest():
            why = f"Nothing was done: this {KEY_HEADER} belongs to another request. Send a new UUID."
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, why)
        case _ as never:
            assert_never(never)


def _in_progress() -> Problem:
    why = f"A request with this {KEY_HEADER} is being answered now. To get the answer, send it again."
    return Problem(HTTPStatus.CONFLICT, why, {"Retry-After": "1"})


def _run_leased(request: HttpRequest, held: Leased, run: Callable[[], HttpResponse]) -> HttpResponse:
    """Run the operation, and store its answer for repetitions of the request.

    The answer is not stored if it is an error: then nothing was done, and a repeated request runs the operation again.
    """
    kept = False
    try:
        answer = run()
        if answer.status_code < HTTPStatus.BAD_REQUEST:
            if (stored := getattr(request, _STORED, None)) is not None:
                answer.content = stored  # a repeated request gets the same bytes
            else:
                calls.store_answer(held, answer.status_code, answer.content)
            kept = True
        return answer
    finally:
        if not kept:
            with suppress(*rows.OUTAGES):  # the lease ends by itself
                calls.release_key(held)
