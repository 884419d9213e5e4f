"""Register the operations of the API, and write its OpenAPI document with scopes, headers and errors."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, TypeVar

from ninja import NinjaAPI, Router
from ninja.decorators import decorate_view
from ninja.openapi.schema import OpenAPISchema

from reprocessing.api.site import problems
from reprocessing.api.site.guard import KEY_HEADER, KEY_PATTERN, guarded
from reprocessing.domain.api.scopes import Scope

View = TypeVar("View", bound=Callable[..., Any])
_SCHEME: Final = "ApiToken"
_SCOPE: Final = "x-scope"
_REFS: Final = "#/components"
#: Errors of every operation. `_OF_CHANGES` has more errors, of operations that change something.
_EVERYWHERE: Final = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read, or lacks its Idempotency-Key.",
    HTTPStatus.UNAUTHORIZED: "The token is missing, unknown, revoked or expired.",
    HTTPStatus.FORBIDDEN: "The token lacks the scope, or may not change what several teams use.",
    HTTPStatus.NOT_FOUND: "The object, such as a DLQ, a message or a run, does not exist, or the token does not see "
                          "it.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A field is not valid, or the Idempotency-Key belongs to another request.",
    HTTPStatus.TOO_MANY_REQUESTS: "The token sends requests too fast. Retry-After has the seconds to wait.",
    HTTPStatus.SERVICE_UNAVAILABLE: "PostgreSQL or SQS cannot be reached. Retry-After has the seconds to wait.",
}  # fmt: skip
_OF_CHANGES: Final = {
    HTTPStatus.CONFLICT: "The present state of the object does not allow the change, or the same request is being "
                         "answered now.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON.",
}  # fmt: skip
_WAITS: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def reads(router: Router, path: str, scope: Scope, response: object, *, tag: str) -> Callable[[View], View]:
    """Return a decorator that registers a function as a GET operation, which changes nothing.

    `scope`: the scope that the token needs. `response`: the type of the answer. The first line of the function's
    docstring is the operation's summary in the OpenAPI document, the other lines are its description.
    """
    return _operation(router.get, path, scope, response, tag, changes=False)


def changes(router: Router, path: str, scope: Scope, response: object, *, tag: str) -> Callable[[View], View]:
    """Return a decorator that registers a function as a POST operation, which changes something if confirm is true.

    The parameters are those of `reads`.
    """
    return _operation(router.post, path, scope, response, tag, changes=True)


def _operation(  # noqa: PLR0913  # each of another kind
    method: Callable[..., Any], path: str, scope: Scope, response: object, tag: str, *, changes: bool
) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        title, _, more = (view.__doc__ or "").partition("\n\n")
        added = method(
            path, response=response, tags=[tag], operation_id=view.__name__, summary=title.strip(),
            description=" ".join(more.split()) or None, openapi_extra={_SCOPE: scope.value},
        )  # fmt: skip
        registered: View = added(decorate_view(guarded(scope, changes=changes))(view))
        return registered

    return decorate


class RedriveAPI(NinjaAPI):
    """The API of django-ninja, with an OpenAPI document that has the scope and the errors of each operation."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document."""
        found = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        components = found["components"]
        components["schemas"]["ProblemAnswer"] = _problem_schema(components["schemas"])
        components["securitySchemes"] = {
            _SCHEME: {
                "type": "http",
                "scheme": "bearer",
                "description": "A secret that the command make_api_token printed.",
            }
        }
        components["responses"] = {
            status.name: _problem(status, text) for status, text in (_EVERYWHERE | _OF_CHANGES).items()
        }
        components["parameters"] = {"IdempotencyKey": _KEY_PARAMETER}
        for methods in found["paths"].values():
            for method, operation in methods.items():
                _complete(operation, changes=method == "post")
        return found


_KEY_PARAMETER: Final[dict[str, Any]] = {
    "name": KEY_HEADER, "in": "header", "required": False, "schema": {"type": "string", "pattern": f"^{KEY_PATTERN}$"},
    "description": "Send a new UUID for each change. If you repeat a request, send the same UUID and body: for a day, "
    "you get the same answer, and nothing is done twice. Required if `confirm` is true.",
}  # fmt: skip


def _complete(operation: dict[str, Any], *, changes: bool) -> None:
    """Add the scope, the errors and the header Idempotency-Key to an operation of the OpenAPI document."""
    for parameter in operation["parameters"]:
        _without_null(parameter["schema"])
    operation["security"] = [{_SCHEME: [operation[_SCOPE]]}]
    for status in (*_EVERYWHERE, *(_OF_CHANGES if changes else ())):
        operation["responses"][status.value] = {"$ref": f"{_REFS}/responses/{status.name}"}
    if changes:
        operation["parameters"] = [*operation["parameters"], {"$ref": f"{_REFS}/parameters/IdempotencyKey"}]


def _without_null(schema: dict[str, Any]) -> None:
    """Remove null from the schema of an optional query parameter, because a URL cannot contain null."""
    if "anyOf" in schema:
        (kind,) = (one for one in schema.pop("anyOf") if one != {"type": "null"})
        schema |= kind


def _problem_schema(schemas: dict[str, Any]) -> dict[str, Any]:
    made = problems.ProblemAnswer.model_json_schema(ref_template=f"{_REFS}/schemas/{{model}}")
    schemas |= made.pop("$defs")
    return made


def _problem(status: HTTPStatus, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": text,
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": f"{_REFS}/schemas/ProblemAnswer"}}},
    }
    if status in _WAITS:
        found["headers"] = {"Retry-After": {"description": "seconds to wait", "schema": {"type": "integer"}}}
    return found
