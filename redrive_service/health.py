"""Health checks of the service itself: whether a web process answers, and whether the service can work.

Load balancers, containers and `make demo` request these pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe
from psycopg import generators, waiting
from psycopg.abc import RV, PQGen
from psycopg.conninfo import make_conninfo
from redis.backoff import NoBackoff
from redis.retry import Retry

from redrive_service.exposition import metrics_page
from reprocessing.models import Heartbeat
from reprocessing.tasks import CONTROL

TIMEOUT = 2.0  # max seconds in which PostgreSQL or Redis must answer
LONGEST_SILENCE = timedelta(minutes=1)
_NOT_LIBPQ = {"context", "cursor_factory", "prepare_threshold"}  # parameters that psycopg has, but libpq does not


class HealthMiddleware:
    """Answers health checks and /metrics before other middleware checks the host or requires TLS.

    This is needed because load balancers, containers and Prometheus send requests to an IP address, without TLS.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer to a health check or to /metrics. For other paths, call the next middleware."""
        answer = HEALTH_PAGES.get(request.path_info)
        if answer is None:
            return self._get_response(request)
        response = answer(request)
        if request.method == "HEAD":  # RFC 9110: the same headers and no body
            response["Content-Length"] = str(len(response.content))
            response.content = b""
        return response


@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    """Return status 200 and check nothing. A liveness probe restarts the process if this page does not answer."""
    return JsonResponse({"live": True})


@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """Return status 200 if PostgreSQL and Redis answer, else 503. The body has true or false for each of the two."""
    parts = {name: answers() for name, answers in DEPENDENCIES.items()}
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)


@require_safe
def work(_request: HttpRequest) -> JsonResponse:
    """Return status 200 if a worker took a task within the last minute, else 503.

    The body has the seconds since a worker last took a task, or null if no task is known or PostgreSQL does not answer.
    """
    question, parameters = Heartbeat.ages(CONTROL).query.sql_with_params()
    try:
        row = _ask_postgres(question, parameters)
    except psycopg.Error:
        row = None
    age = None if row is None else row[0]
    consuming = Heartbeat.is_recent(age, within=LONGEST_SILENCE)
    seconds = None if age is None else round(age.total_seconds(), 1)
    return JsonResponse({"consuming": consuming, "age_seconds": seconds}, status=200 if consuming else 503)


def postgres_answers() -> bool:
    """Return whether PostgreSQL answers within 2 s (`TIMEOUT`)."""
    try:
        return _ask_postgres("SELECT 1") == (1,)
    except psycopg.Error:
        return False


def redis_answers() -> bool:
    """Return whether Redis answers a ping within 2 s (`TIMEOUT`): 1 s to connect, and 1 s for the answer."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        # Set after the client is made, because options in the URL override arguments.
        client.connection_pool.connection_kwargs.update(
            socket_connect_timeout=TIMEOUT / 2, socket_timeout=TIMEOUT / 2, retry=Retry(NoBackoff(), 0)
        )
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


class _Hasty(psycopg.Connection[tuple[Any, ...]]):
    """A connection to PostgreSQL that waits for answers only until the time `until`. libpq would wait for ever."""

    until: float

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ARG002  # this class has its own deadline
        return super().wait(gen, interval, max(0.0, self.until - time.monotonic()))


def _ask_postgres(question: str, parameters: Sequence[object] = ()) -> tuple[Any, ...] | None:
    """Run a query on a new connection, and return its first row, or None if the query finds no row.

    This takes at most 2 s (`TIMEOUT`), plus the time of the DNS lookup.

    Raises:
        psycopg.Error: the query failed, or took too long.
    """
    until = time.monotonic() + TIMEOUT
    connection = _Hasty(waiting.wait_conn(generators.connect(_address()), interval=0.1, timeout=TIMEOUT))
    with closing(connection):
        connection.until = until
        connection.autocommit = True
        return connection.execute(question.encode(), parameters).fetchone()


def _address() -> str:
    parameters = connections["default"].get_connection_params()
    return make_conninfo(**{name: value for name, value in parameters.items() if name not in _NOT_LIBPQ})


DEPENDENCIES: dict[str, Callable[[], bool]] = {"postgres": postgres_answers, "redis": redis_answers}
HEALTH_PAGES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/health/live": live,
    "/healthz": live,
    "/health/ready": ready,
    "/readyz": ready,
    "/health/work": work,
    "/metrics": metrics_page,
}
