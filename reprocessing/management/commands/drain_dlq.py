"""The command `manage.py drain_dlq`, which redrives the messages of a DLQ from this process, without workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.management.arguments import (
    add_by,
    add_confirm,
    add_json,
    add_name,
    add_run_reason,
    current_user,
    slug,
)
from reprocessing.management.command_line import command
from reprocessing.management.console import find_dlq, format_time
from reprocessing.management.options.mistyped_run_id import refuse_mistyped
from reprocessing.management.options.run_limit_options import add_run_limits, read_run_limits, refuse_run_limits
from reprocessing.management.options.selection_options import add_selection, read_selection
from reprocessing.management.output import drain_output
from reprocessing.management.shared.approval_text import approval_text
from reprocessing.management.shared.drain_command import (
    DrainCommand,
    Interruption,
    drain_context,
    refuse_native_redrive,
    refuse_stopped,
)
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunState
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import drain, forecast_plan, other_runs
from reprocessing.pipeline.runs.forecast_plan import PlanForecast
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.runs import arrived_since, plans, progress, run_transitions, selection
from reprocessing.store.runs.plans import RunRequest

#: Max seconds of one capture. If it has not emptied the DLQ, the next capture starts.
_CAPTURE = 3_600.0
#: Seconds until the next try to capture a DLQ that another process captures.
_RETRY_EVERY = 1.0


class Command(DrainCommand):
    """Redrive the messages of a DLQ to their targets, in order per ordering key.

    Captures the DLQ and shows a plan. With --confirm, executes the plan and waits for the outcomes. Needs neither
    workers nor beat. A dry run also captures: it stores the messages in PostgreSQL, but sends, parks and discards
    nothing. Captured messages of a standard DLQ stay in SQS, invisible to other readers, up to the setting
    --held-copies-limit of add_dlq. Further messages, and those of a FIFO DLQ, are deleted from SQS.

    Examples:
        drain_dlq orders --limit 100
        drain_dlq orders --run monday --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--run", type=slug, metavar="ID", help="id for the new run, or id of an existing run to continue"
        )
        add_selection(parser)
        add_run_limits(parser)
        parser.add_argument(
            "--enqueue", action="store_true", help="let the workers send the messages, and do not wait for outcomes"
        )
        add_by(parser)
        add_run_reason(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["name"])
        wish = read_selection(options, dlq)
        known = drain.find_run(dlq, name=options["run"], selection=wish) if options["run"] else None
        log = ProgressLog(self.stderr)
        if stopped := refuse_stopped(dlq, acts=options["confirm"]):
            log.line(f"{stopped}\nUntil then --confirm is refused. A plan sends nothing.")
        if dlq.mode == Mode.AUTOMATIC:
            raise CommandError(
                f"{dlq.name} is in mode automatic: beat and workers redrive it. To watch: "
                f"{command('redrive_status', dlq.name, '--watch')}\nTo redrive it by hand: "
                f"{command('add_dlq', dlq.name, '--mode', 'manual', '--confirm')}"
            )
        refuse_native_redrive(dlq, log)
        if known is not None:
            refuse_run_limits(options, dlq)
        limits = read_run_limits(options, dlq)
        if known is None and options["run"] and options["confirm"]:
            refuse_mistyped(dlq, options["run"])
        with Interruption() as interruption:
            if known is not None:
                self.repeat(known, options, interruption)
            else:
                self.drain(dlq, wish or ALL_LETTERS, options, interruption, limits)

    def repeat(self, run: Run, options: dict[str, Any], interruption: Interruption) -> None:
        """Show an existing run or its plan; with --confirm, continue the run. Captures nothing.

        Raises:
            CommandError: SQS would delete messages of the plan before they are sent.
        """
        planned = run.state == RunState.PLANNED
        outlook = look_ahead(run, by_beat=options["enqueue"]) if planned else None
        refused = drain_output.expiry_refusal(outlook) if outlook and outlook.late_targets else ""
        if outlook and not options["json"]:
            self.say("\n".join(drain_output.plan_lines(outlook, 0)))
            if arrived := drain_output.arrived_text(arrived_since.arrived_since_start(run.pk)):
                self.say(f"  since then      {arrived} arrived; not part of this run")
        if refused:
            raise CommandError(refused)
        if options["confirm"]:
            self.act(drain.continue_run(run, by=options["by"], **_why(options)), options, interruption)
            return
        if outlook and options["json"]:
            since = arrived_since.arrived_since_start(run.pk)
            arrived_in_json = {"arrived": since.n, "arrived_is_minimum": since.is_minimum}
            self.report(drain_output.plan_in_json(outlook, 0, refused) | arrived_in_json)
        elif not outlook:
            self.show_result(run, options, progress.count_letters(run.pk), dry_run=True)
        if not options["json"]:
            self.say(next_step(run, options))

    def drain(
        self, dlq: DeadLetterQueue, wish: Selection, options: dict[str, Any], interruption: Interruption,
        limits: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Capture the DLQ, plan a new run and show the plan; with --confirm, execute the plan.

        `wish` selects the messages of the run. `limits` are the waves, the rate and the order of this run only.
        """
        new, through = self.capture(dlq, interruption, waits_for_others=options["confirm"])
        if wish.conditions and not (selection.has_match(dlq.pk, wish) or interruption()):
            self.show_no_match(dlq, wish, new, options)  # without a plan, which would replace the DLQ's last plan
            return
        name = options["run"] or f"{dlq.name[:80]}-{uuid4().hex[:8]}"
        asked = RunRequest(name, options["by"], wish, named=bool(options["run"]), through=through, **limits)
        run = drain.plan_run(dlq, asked)
        outlook = look_ahead(run, by_beat=options["enqueue"])
        refused = drain_output.expiry_refusal(outlook) if outlook.late_targets else ""
        if not options["json"]:
            self.say("\n".join(drain_output.plan_lines(outlook, new)))
        acts = options["confirm"] and (wish == ALL_LETTERS or not outlook.is_empty)
        if acts and not refused and not interruption():
            refuse_leftovers(outlook, wish, acting_command(run, options))
            self.act(drain.continue_run(run, by=options["by"], **_why(options)), options, interruption)
            return
        if refused or interruption() or outlook.is_empty:
            plans.delete_plan(run.pk)
        if options["json"]:
            result = drain_output.plan_in_json(outlook, new, refused) | {"dry_run": not options["confirm"]}
            self.report(result | {"run": None} if outlook.is_empty and options["confirm"] else result)
        if interruption():
            raise CommandError(
                "Interrupted: nothing was sent. Captured messages are kept. To continue, run this command again.",
                returncode=interruption.status,
            )
        if refused:
            raise CommandError(refused)
        if not options["json"]:
            for line in approval_text({dlq.pk: run_transitions.count_to_send(run.pk)}, by=options["by"]):
                self.say(line)
            begin = "Nothing" if options["confirm"] else "This was a dry run: nothing"
            said = f"{begin} was sent, parked or discarded."
            self.say(said if outlook.is_empty else f"{said} To execute the plan:\n{acting_command(run, options)}")

    def show_no_match(self, dlq: DeadLetterQueue, wish: Selection, new: int, options: dict[str, Any]) -> None:
        """Show that no captured message matches the selection `wish`.

        `new` is the number of messages that this command has captured.

        Raises:
            CommandError: the selection names a key or message ids.
        """
        said = drain_output.no_match_text(dlq, wish)
        if wish.key is not None or wish.message_ids:
            raise CommandError(said)
        if options["json"]:
            nothing = Run(pk=0, dlq=dlq, selection=wish.stored(dlq.name), selected=0, waves=dlq.waves)
            found = drain_output.plan_in_json(look_ahead(nothing, by_beat=options["enqueue"]), new, "")
            self.report(found | {"run": None, "dry_run": not options["confirm"]})
        else:
            self.say(said)

    def capture(
        self, dlq: DeadLetterQueue, interruption: Interruption, *, waits_for_others: bool
    ) -> tuple[int, int | None]:  # fmt: skip
        """Capture until the DLQ is empty. Return the number of new messages, and the id of the newest letter.

        The id is None if the DLQ was not emptied.

        Args:
            dlq: the DLQ to capture.
            interruption: when called, returns whether the user asked the command to end.
            waits_for_others: an earlier capture may have been interrupted after it received messages, before it
                stored them. If true, wait until SQS shows these messages again, to keep the order.

        Raises:
            QueueUnreachable: receiving failed.
        """
        log, pace, new, is_wait_shown = ProgressLog(self.stderr), Pace(), 0, False
        log.line(drain_output.capture_notice(dlq))
        while True:
            found = drain.capture_dlq(
                dlq,
                drain_context(interruption),
                seconds=_CAPTURE,
                on_progress=lambda now: show_capture(log, now, pace),
            )
            new += found.letters
            if found.error:
                raise QueueUnreachable(
                    f"{found.error} Captured messages are kept. To continue, run this command again."
                )
            if found.drained or interruption() or not (found.busy or waits_for_others):
                return new, found.newest_letter if found.drained else None
            refuse_native_redrive(dlq, log)
            if is_wait_shown:
                log.line_if_due(lambda: waits_for_another(dlq))
            else:
                log.line(waits_for_another(dlq))
                is_wait_shown = True
            interruption.wait(_RETRY_EVERY)

    def act(self, run: Run, options: dict[str, Any], interruption: Interruption) -> None:
        """Send the messages of the run from this process; with --enqueue, leave them to workers."""
        if options["enqueue"]:
            self.leave_to_workers(run, options)
        else:
            self.work(run, options, interruption, along=other_runs.in_progress(run.dlq, run))


def refuse_leftovers(outlook: PlanForecast, wish: Selection, acting: str) -> None:
    """Raise CommandError if a new run would also send messages that `wish` does not select, which nobody has seen yet.

    `acting`: the command that sends all of them.
    """
    if wish != ALL_LETTERS and outlook.prospect.returned:
        raise CommandError(f"{drain_output.leftovers_refusal(outlook)}\n{acting}")


def _why(options: dict[str, Any]) -> dict[str, str]:
    return {"reason": options["reason"]} if options["reason"] else {}


def show_capture(log: ProgressLog, now: Captured, pace: Pace) -> None:
    """Show the progress of a capture, once it has received messages."""
    if now.received:
        log.line_if_due(lambda: f"{now.received:,} messages received, {now.letters:,} new{pace.add(now.received)}")


def waits_for_another(dlq: DeadLetterQueue) -> str:
    """Return a sentence that this capture waits for messages which another capture made invisible, and until when."""
    watch = dlq_status.dlq_statuses(dlq.pk)[0]
    until = watch.orphans_hidden_until or watch.captured_until
    said = f", until {format_time(until)} at the latest" if until else ""
    return f"Another capture of {dlq.name} received messages that are still invisible: waiting for them{said}."


def look_ahead(run: Run, *, by_beat: bool) -> PlanForecast:
    """Return the forecast of a plan. If `by_beat`, workers and beat send the messages, else this process does."""
    view = conf.current()
    return forecast_plan.forecast_run(
        run, count_lag=view.count_lag.total_seconds(), by_beat=by_beat, prices=view.prices
    )


def acting_command(run: Run, options: dict[str, Any]) -> str:
    """Return the command line that executes or continues exactly this run."""
    flags = ["--enqueue"] if options["enqueue"] else []
    by = ["--by", options["by"]] if options["by"] != current_user() else []
    return command("drain_dlq", run.dlq.name, "--run", run.name, *by, *flags, "--confirm")


def next_step(run: Run, options: dict[str, Any]) -> str:
    """Return a dry run's last lines: the state of the existing run, and the command that continues the run."""
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return drain.describe_stopped(run)
    return f"{run.name} is {run.state}. This was a dry run. To continue the run:\n{acting_command(run, options)}"
