"""The Celery tasks: ids in, one call, next tasks out."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from reprocessing.models import Pulse

CONTROL = "redrive-control"


@shared_task(name="reprocessing.tick")
def tick(**_future: object) -> None:
    """What beat sends every two seconds. That it arrived is the pulse of the control queue."""
    Pulse.beat(CONTROL, now=timezone.now())  # noqa: TID251  # a door reads the clock
