"""What drain_dlq and rerun share: what they refuse, how they are interrupted, how they work on a run and tell of it."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import SystemRandom
from types import FrameType
from typing import Any, Self

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper
from django.db import Error as DatabaseError

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.redis.tick_watermark import HighWater
from reprocessing.management.command_line import as_invoked, command
from reprocessing.management.console import Console
from reprocessing.management.output import drain_output
from reprocessing.management.output.drain_output import together
from reprocessing.management.shared.progress_line import line
from reprocessing.management.shared.reachability import refuse_unreachable
from reprocessing.management.shared.stops_in_words import stop_of
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.maintenance import detect_restore
from reprocessing.pipeline.runs import drain, forecast_plan
from reprocessing.pipeline.runs.drain import Hands
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import Tally
from reprocessing.store.safety import stops

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
        self._next = time.monotonic() + self._every
        with suppress(BrokenPipeError):
            self._out.write(as_invoked(text), lambda plain: plain)
            self._out.flush()

    def seldom(self, text: Callable[[], str]) -> None:
        """One line, unless there has just been one."""
        if time.monotonic() >= self._next:
            self.line(text())


def hands(stop: Callable[[], bool]) -> Hands:
    """What a drain in this process works with."""
    owner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    return Hands(conf.current(), Rates.at(settings.REDIS_URL), SystemRandom().random, owner, stop)


def refuse(dlq: DeadLetterQueue, *, acts: bool) -> str:
    """Refuse a dlq that nothing may be sent from; who only looks is told what stops its sends, empty: nothing.

    Raises:
        CommandError: it says why, since when and by whom, and the cure.
    """
    if dlq.mode == Mode.OBSERVE:
        raise CommandError(
            f"{dlq.name} is in mode observe: nothing is received from it. Allow it with "
            f"{command('add_dlq', dlq.name, '--mode', 'manual', '--confirm')}."
        )
    stopped, held = stop_of(dlq), stops.stopped(None)
    if stopped and (acts or (held and held.restored)):
        raise CommandError(stopped)
    return stopped


def refuse_moves(dlq: DeadLetterQueue, telling: Telling) -> None:
    """Refuse a dlq that AWS's own redrive is emptying; where nobody may ask, tell so.

    Raises:
        CommandError: one is under way.
    """
    try:
        native_redrive.look(dlq)
    except QueueIsOutOfReach as error:
        telling.line(f"Whether AWS's own redrive is at work is not known: {error}")
    if moved := aws_redrives.of(dlq.pk):
        cancel = command("native_redrive", "cancel", dlq.name, "--reason", "WHY", "--confirm")
        raise CommandError(f"{dlq.name}: {aws_redrives.in_words(moved)} Let it end, or cancel it: {cancel}")


class Drainer(Console):
    """A command that works on a run."""

    def work(self, run: Run, options: dict[str, Any], interruption: Interruption, along: Sequence[Run] = ()) -> None:
        """Work on the run, and on those `along`, until their letters have come to an end, and tell of it.

        Raises:
            BackupIsUnreconciled: PostgreSQL was restored, and is held; nothing was sent.
            CommandError: interrupted, one paused or aborted, or Postgres failed; it says what is left and how to go on.
        """
        refuse_unreachable(run.dlq)
        detect_restore.look(HighWater.at(settings.REDIS_URL))
        stops.refuse_while_held()
        telling = Telling(self.stderr)
        go_on = _going_on(run, along)
        try:
            tally = drain.work(
                run, hands(interruption), along=[one.pk for one in along],
                told=lambda own: telling.seldom(lambda: line(run.dlq, together([own, *tallies(along).values()]))),
            )  # fmt: skip
        except DatabaseError:
            telling.line(f"Nothing is lost; the run goes on with: {go_on}")
            raise
        self.tell(run, options, tally, tallies(along))
        refuse_success([run, *along])
        every = together([tally, *tallies(along).values()])
        if interruption() and every.under_way:
            stop = command("stop_redrive", run.dlq.name, "--reason", "WHY", "--confirm")
            raise CommandError(
                f"Interrupted: {drain_output.unfinished(every)}; nothing is lost. Go on here with: {go_on}\n"
                f"Workers, if there are any, go on by themselves, until: {stop}",
                returncode=interruption.status,
            )
        if not options["json"]:
            self.tell_of_others(run, along)

    def tell_of_others(self, run: Run, along: Sequence[Run]) -> None:
        """What of the dlq's other running runs is left, and how to go on with it."""
        for one in forecast_plan.others(run.dlq, run, *along):
            left = drain_output.unfinished(progress.tally(one.pk))
            standing_one = one.kind == RunKind.STANDING  # beat's, which no longer feeds it
            go_on = ("drain_dlq", run.dlq.name) if standing_one else ("rerun", one.name)
            self.say(f"Of the run {one.name} {left}. To go on with it: {command(*go_on, '--confirm')}")

    def leave(self, run: Run, options: dict[str, Any]) -> None:
        """Leave the run to the workers."""
        self.tell(run, options, progress.tally(run.pk), enqueued=True)
        if not options["json"]:
            self.say(
                f"Workers replay it, where worker and beat run. Watch it: {command('redrive_status', run.dlq.name)} "
                f"--watch; what is left of it: {command('rerun', run.name)}"
            )

    def tell(
        self, run: Run, options: dict[str, Any], tally: Tally, along: Mapping[str, Tally] | None = None, **more: object
    ) -> None:
        """What the run, and those that went along, have come to."""
        if options["json"]:
            self.report(drain_output.came_to(run.name, run.dlq, tally, along or {}) | more)
        else:
            self.say("\n".join(drain_output.end(run.name, run.dlq.name, tally, along or {})))


def refuse_success(runs: Sequence[Run]) -> None:
    """Fail where runs that were followed stand still: their letters have not come to an end, and will not by waiting.

    Raises:
        CommandError: who paused or aborted which of them, why, and how to go on.
    """
    for one in runs:
        one.refresh_from_db()
    stand = [one for one in runs if one.state in {RunState.PAUSED, RunState.ABORTED}]
    if stand:
        raise CommandError("\n".join(map(drain.standing_still, stand)))


def tallies(runs: Sequence[Run]) -> dict[str, Tally]:
    """What these runs have come to, by their names."""
    return {one.name: progress.tally(one.pk) for one in runs}


def _going_on(run: Run, along: Sequence[Run]) -> str:
    """The command that goes on with a run; with those along, too, where there are any."""
    if not along:
        return command("rerun", run.name, "--confirm")
    return command("drain_dlq", run.dlq.name, "--run", run.name, "--confirm")
