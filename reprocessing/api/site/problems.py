"""Errors of the API as application/problem+json (RFC 9457): what happened, why, and what to send."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from pydantic import BaseModel, Field

from reprocessing.api.site.json_body import RepeatedKey
from reprocessing.domain.errors import (
    InvalidFilter,
    InvalidPatch,
    InvalidRule,
    InvalidSelector,
    InvalidTarget,
    QueueUnreachable,
    RedriveError,
)
from reprocessing.store import rows

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
_UNREADABLE: Final = "The body is not JSON. Send a JSON object, with Content-Type: application/json."


class FieldProblem(BaseModel):
    """A field of the request that is not valid, and the reason."""

    field: str = Field(description="where the field is: body.reason, query.limit")
    problem: str = Field(description="what is wrong with the field; without the field's value")


class ProblemAnswer(BaseModel):
    """An error in the format of RFC 9457."""

    type: str = Field(description="always about:blank")
    title: str = Field(description="the name of the status code")
    status: int = Field(description="the status code")
    detail: str = Field(description="what happened, why, and what to send")
    errors: list[FieldProblem] = Field(description="fields that are not valid; empty for other errors")


class Problem(Exception):
    """Raised to refuse a request. Has the status code, text and headers of the answer."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.headers = status, dict(headers or {})


def answer(
    status: int, detail: str, *, errors: Iterable[FieldProblem] = (), headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return the HTTP answer of an error, as application/problem+json. `detail`: what happened, why, what to send."""
    problem = ProblemAnswer(
        type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail, errors=list(errors)
    )
    body = json.dumps(problem.model_dump())
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE, headers=dict(headers or {}))


def refused(problem: Problem) -> HttpResponse:
    """Return the HTTP answer to a request that was refused with this `Problem`."""
    return answer(problem.status, str(problem), headers=problem.headers)


def not_found(what: str) -> Problem:
    """Return the error (404) for an object that the token does not see or that does not exist. `what`: its kind."""
    return Problem(HTTPStatus.NOT_FOUND, f"There is no such {what}, or this token does not see it.")


def conflict(why: str) -> Problem:
    """Return the error (409) for a change that the present state does not allow. `why`: a sentence."""
    return Problem(HTTPStatus.CONFLICT, f"Nothing was done. {why}")


def unavailable(error: Exception) -> HttpResponse:
    """Log the database error, and return the answer (503) to a request during an outage of PostgreSQL."""
    logger.warning("A request of the API was not answered: %s", str(error).partition("\n")[0])
    why = "PostgreSQL cannot be reached. Send the request again, with the same Idempotency-Key."
    return answer(HTTPStatus.SERVICE_UNAVAILABLE, why, headers={"Retry-After": "5"})


def add_handlers(api: NinjaAPI) -> None:
    """Register the answers to expected exceptions: refused and invalid requests, and outages of PostgreSQL or SQS."""
    api.add_exception_handler(Problem, lambda _, problem: refused(problem))  # type: ignore[arg-type]  # an instance
    api.add_exception_handler(ValidationError, _invalid)  # type: ignore[arg-type]  # gets an instance
    api.add_exception_handler(HttpError, _unreadable)  # type: ignore[arg-type]  # gets an instance
    api.add_exception_handler(RedriveError, _refused)  # type: ignore[arg-type]  # gets an instance
    for outage in rows.OUTAGES:
        api.add_exception_handler(outage, lambda _, error: unavailable(error))  # type: ignore[arg-type]


def _unreadable(_: HttpRequest, error: HttpError) -> HttpResponse:
    cause = error.__cause__
    if not isinstance(cause, RepeatedKey):
        return answer(HTTPStatus.BAD_REQUEST, _UNREADABLE)
    why = f"Nothing was done: the key {cause.key[:60]!a} is repeated in an object of the body. Send each key once."
    return answer(HTTPStatus.UNPROCESSABLE_ENTITY, why)


def _invalid(_: HttpRequest, error: ValidationError) -> HttpResponse:
    found = [FieldProblem(field=_field(problem["loc"]), problem=str(problem["msg"])) for problem in error.errors]
    first = found[0] if found else FieldProblem(field="the request", problem="is not valid")
    detail = f"Nothing was done: {first.field} is not valid: {first.problem}. The format is in /api/v1/openapi.json."
    return answer(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=found)


def _field(place: Sequence[str | int]) -> str:
    """Return the name of a field for the client, such as body.reason.

    django-ninja puts the parameter name of the Python function into the name; this part is left out.
    """
    source, *names = map(str, place)
    is_parameter = source == "body" or names[:1] == ["query"]
    return ".".join([source, *(names[1:] if is_parameter else names)])


def _refused(_: HttpRequest, error: RedriveError) -> HttpResponse:
    match error:
        case InvalidFilter() | InvalidPatch() | InvalidRule() | InvalidSelector() | InvalidTarget():
            return answer(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        case QueueUnreachable():
            return answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": "5"})
        case _:
            return answer(HTTPStatus.CONFLICT, str(error))
