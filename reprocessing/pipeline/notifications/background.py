"""Send notifications in a thread beside a worker's tasks, so that a slow destination blocks no task."""

from __future__ import annotations

import logging
import os
import threading

from django.db import connection

from reprocessing.conf import Conf
from reprocessing.pipeline.notifications.deliver import deliver

logger = logging.getLogger(__name__)


_lock = threading.Lock()
_thread: threading.Thread | None = None


def start_delivery(conf: Conf) -> bool:
    """Start a thread that sends the due notifications; return False if the thread of an earlier call still runs."""
    global _thread  # noqa: PLW0603  one thread for each process
    with _lock:
        if _thread is not None and _thread.is_alive():
            return False
        _thread = threading.Thread(target=_run, args=(conf,), name="notifications", daemon=True)
        _thread.start()
        return True


def wait_for_delivery(seconds: float) -> bool:
    """Wait up to `seconds` for the thread that sends notifications, if there is one; return whether it has ended."""
    thread = _thread
    if thread is not None:
        thread.join(seconds)
    return thread is None or not thread.is_alive()


def _run(conf: Conf) -> None:
    try:
        deliver(conf)
    except Exception:
        logger.exception("Notifications were not delivered; the next tick tries again.")
    finally:
        connection.close()


def _begin_anew() -> None:
    """Forget the thread after a fork: the child process has the variable, but the thread runs only in its parent."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None


os.register_at_fork(after_in_child=_begin_anew)
