"""Show the progress of long work as lines on standard error, with rate and time left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from django.core.management.base import OutputWrapper

from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.management.command_line import as_invoked

#: Seconds between two progress lines: on a terminal, and if standard error is not a terminal.
_WATCHED, _LOGGED = 1.0, 10.0
#: A rate is measured over the last 30 calls of `Pace.add`.
_SAMPLES = 30


class Pace:
    """Measures how many items per second are done."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)

    def add(self, done: int, left: int | None = None) -> str:
        """Record the total number of items `done` so far, and return a text such as ", 12.5/s, about 2 minutes left".

        `left` is the number of items that are left. If it is None, the text has no time. The text is empty until the
        rate is known.
        """
        now = time.monotonic()
        self._samples.append((now, done))
        began, before = self._samples[0]
        if now <= began or done <= before:
            return ""
        rate = (done - before) / (now - began)
        return f", {rate:,.3g}/s" + (f", {duration_in_words(left / rate)} left" if left else "")


class ProgressLog:
    """Writes progress lines to standard error: at most one per second on a terminal, else one per ten seconds."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self.is_watched = out.isatty()  #: a person reads the lines on a terminal
        self._every = _WATCHED if self.is_watched else _LOGGED
        self._last = ""
        self._next = time.monotonic() + self._every

    def line(self, text: str) -> None:
        """Write a line now, even if the last line was written a moment ago."""
        self._next, self._last = time.monotonic() + self._every, text
        with suppress(BrokenPipeError):
            self._out.write(as_invoked(text), lambda plain: plain)
            self._out.flush()

    def line_if_due(self, text: Callable[[], str]) -> None:
        """Write the line that `text` returns, if enough time has passed since the last line.

        That is 1 s on a terminal, otherwise 10 s. On a terminal, a line equal to the last line is not written.
        """
        if time.monotonic() < self._next:
            return
        new = text()
        if self.is_watched and new == self._last:
            self._next = time.monotonic() + self._every
        else:
            self.line(new)
