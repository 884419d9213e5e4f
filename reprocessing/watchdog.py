"""A watchdog thread: each worker and each beat watches whether the others live, and notifies people if they do not.

A process that finds the others silent sends the notifications itself: the task for that needs beat and a worker.
"""

from __future__ import annotations

import logging
import threading
import time

from django.db import connection

from reprocessing import conf
from reprocessing.domain.notifications.heartbeat import Watched, silence, watch
from reprocessing.pipeline.notifications import is_due, start_delivery
from reprocessing.pipeline.notifications import silence as silences
from reprocessing.store.notifications import heartbeats

logger = logging.getLogger(__name__)

#: Most seconds between two looks, and the number of looks within `silent_for`.
_EVERY, _LOOKS = 15.0, 8


class Watchdog(threading.Thread):
    """Looks until it is stopped. A look that fails is logged, and followed by the next one."""

    def __init__(self, control: str) -> None:
        """Watch the workers of the queue of this name, in which beat's tick travels."""
        super().__init__(name="redrive watchdog", daemon=True)
        self._control = control
        self._over = threading.Event()
        self._known: Watched | None = None
        self._looked = 0.0

    def run(self) -> None:
        """Look until `stop` is called."""
        every = min(_EVERY, conf.current().thresholds.silent_for.total_seconds() / _LOOKS)
        while not self._over.is_set():
            self.look(every=every, now=time.monotonic())
            self._over.wait(every)

    def stop(self) -> None:
        """End after the current look."""
        self._over.set()

    def look(self, *, every: float, now: float) -> None:
        """Look once; `now` in seconds, by any clock that only rises, `every` the seconds from one look to the next."""
        try:
            self._look(every, now)
        except Exception as error:  # noqa: BLE001  # PostgreSQL may be down; other checks report that
            logger.warning("It is not known whether beat and workers live: %s.", type(error).__name__)
        finally:
            connection.close()

    def _look(self, every: float, now: float) -> None:
        view = conf.current()
        silent_for = view.thresholds.silent_for.total_seconds()
        signs = heartbeats.signs(self._control)
        self._known = watch(self._known, signs, elapsed=now - self._looked, longest=2 * every)
        self._looked = now
        found = silence(self._known, silent_for=silent_for)
        silences.note(found, control=self._control, silent_for=silent_for)
        if (found.beat or found.workers) and is_due(view):
            start_delivery(view)
