"""Touch the file REDRIVE_ALIVE_FILE while the loop of a worker or of beat runs. A liveness probe checks the file's age.

The probe must not ask PostgreSQL, because then every worker would be restarted while PostgreSQL is down.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, TypeAlias

from celery import bootsteps
from django.conf import settings

logger = logging.getLogger("redrive.alive")

CeleryValue: TypeAlias = Any
"""A value from Celery, which is untyped."""

EVERY = 10.0  #: seconds between two touches of a worker's event loop


def touch(path: str) -> None:
    """Touch the file, if a path is set. A failure is only logged. The liveness probe will find the file too old."""
    if not path:
        return
    try:
        Path(path).touch()
    except OSError as error:
        logger.error("redrive.alive.touch_failed error=%s", error.strerror)  # noqa: TRY400  # every few seconds, one line


class AliveStep(bootsteps.StartStopStep):
    """Touches the file from the worker's event loop, while the worker receives tasks."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: CeleryValue, **options: CeleryValue) -> None:
        self._timer: CeleryValue = None
        super().__init__(consumer, **options)
        self.enabled = bool(settings.ALIVE_FILE)

    def start(self, consumer: CeleryValue) -> None:
        """Touch the file now, and then every 10 s (`EVERY`)."""
        touch(settings.ALIVE_FILE)
        self._timer = consumer.timer.call_repeatedly(EVERY, touch, (settings.ALIVE_FILE,))

    def stop(self, _consumer: CeleryValue) -> None:
        """Stop touching the file. Celery calls this when the worker ends, or loses the connection to its queues."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    shutdown = stop
