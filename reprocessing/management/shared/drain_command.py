"""The base class of drain_dlq and rerun: check that sending is possible, send a run's messages, show the result."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from random import SystemRandom
from types import FrameType
from typing import Any, Self

from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from reprocessing import conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.redis.tick_watermark import TickWatermark
from reprocessing.management.command_line import command
from reprocessing.management.console import Console
from reprocessing.management.output import run_result_output
from reprocessing.management.output.run_result_output import sum_tallies
from reprocessing.management.shared.drain_progress import progress_line
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.management.shared.reachability import refuse_unreachable
from reprocessing.management.shared.stop_text import stop_text
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.maintenance import detect_restore
from reprocessing.pipeline.runs import drain, other_runs, run_status
from reprocessing.pipeline.runs.drain import DrainContext
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import RunCounts
from reprocessing.store.safety import stops

_SIGNALLED = 128  #: the exit status of a process that a signal ended is this plus the signal's number


class Interruption:
    """A context manager that catches Ctrl-C and SIGTERM, so that the command can finish its sends in progress first.

    Calling the object returns true if one of the two signals has arrived.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Return whether Ctrl-C was pressed or SIGTERM arrived."""
        return self.signal != 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def wait(self, seconds: float) -> None:
        """Wait for this number of seconds, or until Ctrl-C or SIGTERM."""
        end = time.monotonic() + seconds
        while not self() and time.monotonic() < end:
            time.sleep(0.05)

    def _request(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number

    @property
    def status(self) -> int:
        """Return the exit status that shells show for a process that this signal ended, such as 130 for Ctrl-C."""
        return _SIGNALLED + self.signal


def drain_context(stop: Callable[[], bool]) -> DrainContext:
    """Return what a drain needs: settings, rate limits, and a name of this process for the leases that it takes.

    The drain calls `stop` often, and ends when it returns true (the user pressed Ctrl-C).
    """
    owner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    return DrainContext(conf.current(), Rates.at(settings.REDIS_URL), SystemRandom().random, owner, stop)


def refuse_stopped(dlq: DeadLetterQueue, *, acts: bool) -> str:
    """Return who stopped sends of the DLQ, or of all DLQs, as text. If sends are not stopped, return an empty text.

    `acts` is true if the command would send messages, and false in a dry run.

    Raises:
        CommandError: the DLQ is in mode observe; or all sends are held after a restore; or sends are stopped, and
            `acts` is true.
    """
    if dlq.mode == Mode.OBSERVE:
        raise CommandError(
            f"{dlq.name} is in mode observe: nothing is received from it. To change that: "
            f"{command('add_dlq', dlq.name, '--mode', 'manual', '--confirm')}"
        )
    stopped, held = stop_text(dlq), stops.stop_of(None)
    if stopped and (acts or (held and held.restored)):
        raise CommandError(stopped)
    return stopped


def refuse_native_redrive(dlq: DeadLetterQueue, log: ProgressLog) -> None:
    """Refuse to redrive a DLQ while AWS itself moves its messages (native redrive).

    If AWS does not answer, print a warning to `log`, and use what AWS answered last.

    Raises:
        CommandError: a native redrive is running.
    """
    try:
        follow_redrives.read_redrives(dlq)
    except QueueUnreachable as error:
        log.line(f"It is not known whether a native redrive is running: {error}")
    if moved := aws_redrives.current(dlq.pk):
        cancel = command("native_redrive", "cancel", dlq.name, "--reason", "WHY", "--confirm")
        raise CommandError(f"{dlq.name}: {aws_redrives.describe(moved)} Wait until it ends, or cancel it: {cancel}")


class DrainCommand(Console):
    """A command that sends the messages of a run from its own process."""

    def work(self, run: Run, options: dict[str, Any], interruption: Interruption, along: Sequence[Run] = ()) -> None:
        """Send the messages of the run until all are finished, and show the result.

        `along` are other runs of the DLQ. This command also sends their messages.

        Raises:
            RestoreUnresolved: PostgreSQL was restored from a backup, and all sends are held; nothing was sent.
            CommandError: the user interrupted the command, or a run was paused or aborted.
            DatabaseError: PostgreSQL failed.
        """
        refuse_unreachable(run.dlq)
        detect_restore.is_database_current(TickWatermark.at(settings.REDIS_URL))
        stops.refuse_while_held()
        log, pace = ProgressLog(self.stderr), Pace()
        go_on = _going_on(run, along)
        if log.is_watched:
            log.line(f"Ctrl-C ends this command. Nothing is lost: running workers continue the run, or type: {go_on}")
        try:
            tally = drain.replay_run(
                run, drain_context(interruption), along=[one.pk for one in along],
                on_progress=lambda _: log.line_if_due(
                    lambda: progress_line(run.dlq, sum_tallies(tallies([run, *along]).values()), pace)
                ),
            )  # fmt: skip
        except DatabaseError:
            log.line(f"Nothing is lost. To continue the run: {go_on}")
            raise
        others = tallies(along)
        self.show_result(run, options, tally, others)
        fail_if_stopped([run, *along])
        every = sum_tallies([tally, *others.values()])
        if interruption() and every.under_way:
            stop = command("stop_redrive", run.dlq.name, "--reason", "WHY", "--confirm")
            raise CommandError(
                f"Interrupted: {run_result_output.unfinished_text(every)}; nothing is lost. To continue here: {go_on}\n"
                f"Running workers continue by themselves. To stop them: {stop}",
                returncode=interruption.status,
            )
        if not options["json"]:
            self.show_other_runs(run, along)

    def show_other_runs(self, run: Run, along: Sequence[Run]) -> None:
        """Print a line for each other running run of the DLQ that is not in `along`, and how to continue the run."""
        for one in other_runs.in_progress(run.dlq, run, *along):
            left = run_result_output.unfinished_text(progress.count_unfinished(one.pk))
            is_automatic = one.kind == RunKind.AUTOMATIC  # beat no longer adds messages to the automatic run
            go_on = ("drain_dlq", run.dlq.name) if is_automatic else ("rerun", one.name)
            self.say(f"Run {one.name}: {left}. To continue it: {command(*go_on, '--confirm')}")

    def leave_to_workers(self, run: Run, options: dict[str, Any]) -> None:
        """Show the state of a run whose messages workers will send, and how to watch the run."""
        self.show_result(run, options, progress.count_letters(run.pk), enqueued=True)
        if not options["json"]:
            self.say(
                f"Workers send it, if beat and workers run. To watch: {command('redrive_status', run.dlq.name)} "
                f"--watch; to see what is left: {command('rerun', run.name)}"
            )

    def show_result(
        self,
        run: Run,
        options: dict[str, Any],
        tally: RunCounts,
        along: Mapping[str, RunCounts] | None = None,
        **more: object,
    ) -> None:
        """Show the result of the run and of the runs `along`, as text or JSON.

        `tally` has the number of the run's messages in each state, and `along` the same numbers of other runs, by run
        id. `more` are additional members of the JSON.
        """
        if options["json"]:
            self.report(run_result_output.result_in_json(run.name, run.dlq, tally, along or {}) | more)
        else:
            self.say("\n".join(run_result_output.result_lines(run.name, run.dlq.name, tally, along or {})))
            counts = {run.name: tally, **(along or {})}
            blocked = Run.objects.filter(name__in=[name for name, found in counts.items() if found.blocked])
            for one in blocked.select_related("dlq").order_by("pk"):
                self.say("\n".join(other_runs.describe_blocking(one)))


def fail_if_stopped(runs: Sequence[Run]) -> None:
    """Check that no run was paused or aborted.

    Raises:
        CommandError: a run was paused or aborted. The error says by whom, why, and how to continue.
    """
    for one in runs:
        one.refresh_from_db()
    stand = [one for one in runs if one.state in {RunState.PAUSED, RunState.ABORTED}]
    if stand:
        raise CommandError("\n".join(map(drain.describe_stopped, stand)))


def tallies(runs: Sequence[Run]) -> dict[str, RunCounts]:
    """Return the number of messages by state of each run, by the run's name. In large automatic runs, it is limited."""
    return {one.name: run_status.letter_counts(one) for one in runs}


def _going_on(run: Run, along: Sequence[Run]) -> str:
    """Return the command line that continues the run and the runs `along`."""
    if not along:
        return command("rerun", run.name, "--confirm")
    return command("drain_dlq", run.dlq.name, "--run", run.name, "--confirm")
