"""Somebody asked the sandbox to stop: remembered when the signal comes, heeded where it is safe.

An exception raised by a signal handler can fall into a destructor, which swallows it, or between a server's start and
the note that it must be stopped. So the handler only remembers, and whoever waits asks.
"""

from __future__ import annotations

import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_asked: list[int] = []


class Stopped(Exception):
    """A signal asked the sandbox to stop."""


def remember_signals() -> None:
    """From now on signals are remembered instead of ending the process."""
    for number in SIGNALS:
        signal.signal(number, lambda sent, _frame: _asked.append(sent))


def raise_if_stopped() -> None:
    """Go on, unless somebody has asked to stop.

    Raises:
        Stopped: somebody has.
    """
    if _asked:
        raise Stopped
