"""What drain_dlq and rerun share: what they refuse, how they are interrupted, how they work on a run and tell of it."""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import SystemRandom
from types import FrameType
from typing import Any, Self

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper
from django.db import Error as DatabaseError

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.management import drain_words
from reprocessing.management.console import Console, when
from reprocessing.models import DeadLetterQueue, Run, progress, standing, stops
from reprocessing.models.dead_letter_queue import Mode
from reprocessing.models.progress import Tally
from reprocessing.pipeline import drain
from reprocessing.pipeline.drain import Hands
from reprocessing.rate import Rates
from reprocessing.sqs import moves

#: Seconds between two lines of progress: for a person who watches, and for a log.
_WATCHED, _LOGGED = 1.0, 10.0
#: What a shell reports of a process that a signal ended.
_SIGNALLED = 128


class Interruption:
    """Inside its `with` block Ctrl-C and SIGTERM ask for an end, however often; call it to know whether one did."""

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Whether an end was asked for."""
        return self.signal != 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for one in (signal.SIGINT, signal.SIGTERM):
                self._before[one] = signal.signal(one, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)

    def wait(self, seconds: float) -> None:
        """Wait so long, unless it is asked for before."""
        end = time.monotonic() + seconds
        while not self() and time.monotonic() < end:
            time.sleep(0.05)

    def _asked(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number

    @property
    def status(self) -> int:
        """The process's exit status."""
        return _SIGNALLED + self.signal


class Telling:
    """Lines on standard error: results go to standard output, where a program may read them."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._every = _WATCHED if out.isatty() else _LOGGED
        self._next = time.monotonic() + self._every

    def line(self, text: str) -> None:
        """One line, now."""
        with suppress(BrokenPipeError):
            self._out.write(text, lambda plain: plain)
            self._out.flush()

    def seldom(self, text: Callable[[], str]) -> None:
        """One line, unless there has just been one."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self.line(text())


def hands(stop: Callable[[], bool]) -> Hands:
    """What a drain in this process works with."""
    owner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    return Hands(conf.current(), Rates.at(settings.REDIS_URL), SystemRandom().random, owner, stop)


def command(*words: object) -> str:
    """A command line, to be copied into a shell."""
    return shlex.join(["manage.py", *map(str, words)])


def refuse(dlq: DeadLetterQueue) -> None:
    """Refuse a dlq that nothing may be sent from.

    Raises:
        CommandError: it says why, since when and by whom, and the cure.
    """
    if dlq.mode == Mode.OBSERVE:
        raise CommandError(
            f"{dlq.name} is in mode observe: nothing is received from it. Allow it with "
            f"{command('add_dlq', dlq.name, '--mode', 'manual', '--confirm')}."
        )
    if stopped := stop_of(dlq):
        raise CommandError(stopped)


def stop_of(dlq: DeadLetterQueue) -> str:
    """What stops the dlq's sends, in words; empty when nothing does."""
    for stop, what, which in (
        (stops.stopped(None), "Everything", "--all"),
        (stops.stopped(dlq.pk), dlq.name, dlq.name),
    ):
        if stop:
            return (
                f'{what} is stopped since {when(stop.since)} by {stop.by} ("{stop.reason}"): nothing is sent until '
                f"resume_redrive {which}."
            )
    return ""


def refuse_moves(dlq: DeadLetterQueue, telling: Telling) -> None:
    """Refuse a dlq that AWS's own redrive is emptying; where nobody may ask, tell so.

    Raises:
        CommandError: one is under way.
    """
    try:
        found = moves(dlq.arn)
    except QueueIsOutOfReach as error:
        telling.line(f"Whether AWS's own redrive is at work is not known: {error}")
        return
    if found:
        raise CommandError(
            f"AWS's own redrive is moving messages out of {dlq.name} ({found[0].moved:,} so far), without order or "
            f"record. Let it end, or cancel it: aws sqs list-message-move-tasks --source-arn {dlq.arn}, "
            "aws sqs cancel-message-move-task."
        )


class Drainer(Console):
    """A command that works on a run."""

    def work(self, run: Run, options: dict[str, Any], interruption: Interruption) -> None:
        """Work on the run until its letters have come to an end, and tell of it.

        Raises:
            CommandError: interrupted, or Postgres failed; it says what is left and how to go on.
        """
        telling = Telling(self.stderr)
        go_on = command("rerun", run.name, "--confirm")
        try:
            tally = drain.work(run, hands(interruption), told=lambda now: telling.seldom(lambda: _line(run.dlq, now)))
        except DatabaseError:
            telling.line(f"Nothing is lost; the run goes on with: {go_on}")
            raise
        self.tell(run, options, tally)
        if interruption() and tally.under_way:
            raise CommandError(
                f"Interrupted: {drain_words.counted(tally.open, 'letter')} of {run.name} left; nothing is lost. "
                f"Workers, if there are any, go on with them until stop_redrive {run.dlq.name}; here {go_on} does.",
                returncode=interruption.status,
            )

    def leave(self, run: Run, options: dict[str, Any]) -> None:
        """Leave the run to the workers."""
        self.tell(run, options, progress.tally(run.pk), enqueued=True)
        if not options["json"]:
            self.say(
                f"Workers replay it, where worker and beat run. Watch it: {command('redrive_status', run.dlq.name)} "
                f"--watch; what is left of it: {command('rerun', run.name)}"
            )

    def tell(self, run: Run, options: dict[str, Any], tally: Tally, **more: object) -> None:
        """What the run has come to."""
        if options["json"]:
            self.report(drain_words.came_to(run.name, run.dlq, tally) | more)
        else:
            self.say("\n".join(drain_words.end(run.name, run.dlq.name, tally)))


def _line(dlq: DeadLetterQueue, tally: Tally) -> str:
    """A line of progress, and why nothing moves where nothing can."""
    reasons: Sequence[str] = [stop_of(dlq)]
    if tally.awaiting:
        lag = conf.current().count_lag.total_seconds()
        waits = {standing.awaited(one) for one in standing.evidence(dlq.pk, count_lag=lag)}
        reasons = [*reasons, *(f"Outcomes wait for: {one}." for one in sorted(waits) if one)]
    return " ".join([f"{drain_words.progress(tally)}.", *filter(None, reasons)])
