"""Remembers that a signal asked the sandbox to stop, and raises an error only at safe places.

An exception raised by a signal handler can fall into a destructor, which swallows it, or between a server's start and
the registration for its stop. So the handler only remembers the signal, and every waiting loop checks it.
"""

from __future__ import annotations

import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_asked: list[int] = []


class Stopped(Exception):
    """A signal asked the sandbox to stop."""


def remember_signals() -> None:
    """From now on, let SIGTERM, SIGINT and SIGHUP only be remembered. They no longer end the process."""
    for number in SIGNALS:
        signal.signal(number, lambda sent, _frame: _asked.append(sent))


def raise_if_stopped() -> None:
    """Do nothing, unless a signal has asked the sandbox to stop.

    Raises:
        Stopped: a signal has asked the sandbox to stop.
    """
    if _asked:
        raise Stopped
