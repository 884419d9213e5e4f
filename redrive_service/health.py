"""Is it alive, and can it work? For load balancers, containers and `make demo`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from reprocessing.models import Pulse
from reprocessing.tasks import CONTROL

PATIENCE = 2.0  # seconds a dependency may take
LONGEST_SILENCE = timedelta(minutes=1)


class HealthMiddleware:
    """Answers /health/… before anything looks at the host or asks for TLS.

    Load balancers and containers ask by address, in the clear.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The answer, or what comes of asking the rest of the service."""
        answer = QUESTIONS.get(request.path_info)
        return self._get_response(request) if answer is None else answer(request)


@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    """The process answers; nothing else is asked. Restart the process when it does not."""
    return JsonResponse({"live": True})


@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """200 when everything a request needs answers, else 503. Says only names and yes or no."""
    parts = {name: answers() for name, answers in PARTS.items()}
    return JsonResponse(parts, status=200 if all(parts.values()) else 503)


@require_safe
def work(_request: HttpRequest) -> JsonResponse:
    """200 while a worker consumed a task within the last minute, else 503; with the age of the last one, if known."""
    try:
        age = Pulse.age(CONTROL, now=timezone.now())  # noqa: TID251  # a door reads the clock
    except DatabaseError:
        age = None
    consuming = age is not None and age <= LONGEST_SILENCE
    seconds = None if age is None else round(age.total_seconds(), 1)
    return JsonResponse({"consuming": consuming, "age_seconds": seconds}, status=200 if consuming else 503)


def postgres_answers() -> bool:
    """Whether a query comes back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def redis_answers() -> bool:
    """Whether a ping comes back."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


PARTS: dict[str, Callable[[], bool]] = {"postgres": postgres_answers, "redis": redis_answers}
QUESTIONS: dict[str, Callable[[HttpRequest], JsonResponse]] = {
    "/health/live": live,
    "/health/ready": ready,
    "/health/work": work,
}
