"""Record that a signal asked the sandbox to stop, and raise an error only where this is safe.

A signal handler must not raise an exception. If the signal came during a destructor, Python would ignore the exception.
If it came just after the start of a server, nobody would stop the server. So the handler only records the signal, and
every loop that waits checks for it.
"""

from __future__ import annotations

import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_asked: list[int] = []


class Stopped(Exception):
    """A signal asked the sandbox to stop."""


def remember_signals() -> None:
    """From now on, only record that SIGTERM, SIGINT or SIGHUP arrived. The signals no longer end the process."""
    for number in SIGNALS:
        signal.signal(number, lambda sent, _frame: _asked.append(sent))


def raise_if_stopped() -> None:
    """Check whether a signal has asked the sandbox to stop.

    Raises:
        Stopped: a signal has asked the sandbox to stop.
    """
    if _asked:
        raise Stopped
