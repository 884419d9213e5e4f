"""Send notifications in a thread beside a worker's tasks, so that a slow destination blocks no task."""

from __future__ import annotations

import logging
import os
import threading

from django.db import connection

from reprocessing.conf import Conf
from reprocessing.pipeline.notifications.deliver import deliver

logger = logging.getLogger(__name__)


class _Delivery:
    """The sending thread of this process, if one runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, conf: Conf) -> bool:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return False
            self._thread = threading.Thread(target=_run, args=(conf,), name="notifications", daemon=True)
            self._thread.start()
            return True

    def wait(self, seconds: float) -> bool:
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()


_delivery = _Delivery()


def start_delivery(conf: Conf) -> bool:
    """Start sending in a thread; return False if the previous thread still runs."""
    return _delivery.start(conf)


def wait_for_delivery(seconds: float) -> bool:
    """Wait for the running thread, if any; return whether it has ended."""
    return _delivery.wait(seconds)


def _run(conf: Conf) -> None:
    try:
        deliver(conf)
    except Exception:
        logger.exception("Notifications were not delivered; the next tick tries again.")
    finally:
        connection.close()


def _begin_anew() -> None:
    """Forget the parent's thread in a forked child, where it does not run."""
    global _delivery  # noqa: PLW0603  one a process is what it is for
    _delivery = _Delivery()


os.register_at_fork(after_in_child=_begin_anew)
