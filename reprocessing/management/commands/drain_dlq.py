"""`manage.py drain_dlq`: empty a dlq back into the queues its messages died in, here and now."""

from __future__ import annotations

from argparse import ArgumentTypeError, BooleanOptionalAction
from typing import Any
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.validators import validate_slug

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.runs.selection import ALL, Selection
from reprocessing.management.command_line import command
from reprocessing.management.console import add_confirm, add_json, add_name, find, when, whoever_is_here, words
from reprocessing.management.options.selection_options import add_selection, selected
from reprocessing.management.output import drain_output
from reprocessing.management.shared.drain_command import Drainer, Interruption, Telling, hands, refuse, refuse_moves
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunState
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import drain, forecast_plan
from reprocessing.pipeline.runs.forecast_plan import Outlook
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.runs import late_arrivals, plans, progress
from reprocessing.store.runs.plans import UNNAMED, Asked

#: Seconds after which a capture that never runs dry is begun anew.
_CAPTURE = 3_600.0
#: Seconds between two tries while another capture has the dlq.
_PATIENCE = 1.0
_LONGEST_NAME = 100


class Command(Drainer):
    """Captures and plans; with --confirm replays and waits for outcomes."""

    help = (
        "Captures what a dlq holds and shows the plan; with --confirm replays it, in order per key, and waits for the "
        "outcomes. Needs neither worker nor beat. A dry run captures, too: on a standard dlq the messages become "
        "invisible to its other readers for a while and stay in it; on a FIFO one they move to PostgreSQL and leave "
        "SQS. It sends, parks and discards nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--run", type=run_name, metavar="ID", help="the run's id: the same id again repeats it, done is done"
        )
        add_selection(parser)
        parser.add_argument(
            "--waves", action=BooleanOptionalAction,
            help="one letter first, then 10, then 100, then all, each when the one before went well; default: as the "
            "dlq says",
        )  # fmt: skip
        parser.add_argument("--enqueue", action="store_true", help="leave the replay to the workers")
        parser.add_argument(
            "--by", default=whoever_is_here(), type=words, metavar="WHO", help="who does it (%(default)s)"
        )
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find(options["name"])
        wish = selected(options, dlq)
        known = drain.known(dlq, name=options["run"], selection=wish) if options["run"] else None
        if stopped := refuse(dlq, acts=options["confirm"]):
            Telling(self.stderr).line(f"{stopped}. Until then --confirm is refused; to look and to plan sends nothing.")
        if dlq.mode == Mode.AUTOMATIC:
            raise CommandError(
                f"{dlq.name} is in mode automatic: beat drains it. Watch it with "
                f"{command('redrive_status', dlq.name, '--watch')}, or take it over with "
                f"{command('add_dlq', dlq.name, '--mode', 'manual', '--confirm')}."
            )
        refuse_moves(dlq, Telling(self.stderr))
        if known is None and options["run"] and options["confirm"]:
            refuse_if_plans_wait(dlq, options["run"])
        with Interruption() as interruption:
            if known is not None:
                self.repeat(known, options, interruption)
            else:
                self.drain(dlq, wish or ALL, options, interruption)

    def repeat(self, run: Run, options: dict[str, Any], interruption: Interruption) -> None:
        """A run that was planned or begun before: go on with it, capture nothing for it."""
        planned = run.state == RunState.PLANNED
        outlook = look_ahead(run, by_beat=options["enqueue"]) if planned else None
        refused = drain_output.too_slow(outlook) if outlook and outlook.late else ""
        if outlook and not options["json"]:
            self.say("\n".join(drain_output.plan(outlook, 0)))
            if since := late_arrivals.since(run.pk):
                self.say(f"  since then      {drain_output.counted(since, 'letter')} arrived, which are not part of it")
        if refused:
            raise CommandError(refused)
        if options["confirm"]:
            self.act(drain.again(run, by=options["by"]), options, interruption)
            return
        if outlook and options["json"]:
            self.report(drain_output.plan_in_json(outlook, 0, refused) | {"arrived": late_arrivals.since(run.pk)})
        elif not outlook:
            self.tell(run, options, progress.tally(run.pk), dry_run=True)
        if not options["json"]:
            self.say(how_to_go_on(run, options))

    def drain(self, dlq: DeadLetterQueue, wish: Selection, options: dict[str, Any], interruption: Interruption) -> None:
        """Capture, plan and, when told to, act."""
        new, through = self.capture(dlq, interruption, patient=options["confirm"])
        name = options["run"] or f"{dlq.name[:80]}-{uuid4().hex[:8]}"
        asked = Asked(
            name, options["by"], wish, named=bool(options["run"]), in_waves=options["waves"], through=through
        )  # fmt: skip
        run = drain.prepare(dlq, asked)
        outlook = look_ahead(run, by_beat=options["enqueue"])
        refused = drain_output.too_slow(outlook) if outlook.late else ""
        if not options["json"]:
            self.say("\n".join(drain_output.plan(outlook, new)))
        if options["confirm"] and not refused and not interruption():
            self.act(drain.again(run, by=options["by"]), options, interruption)
            return
        if refused or interruption() or outlook.nothing:
            plans.forget(run.pk)
        if options["json"]:
            self.report(drain_output.plan_in_json(outlook, new, refused))
        if interruption():
            raise CommandError(
                "Interrupted: nothing was sent. What was captured is kept; run this again to go on.",
                returncode=interruption.status,
            )
        if refused:
            raise CommandError(refused)
        if not options["json"]:
            said = "This was a dry run: nothing was sent, parked or discarded."
            self.say(said if outlook.nothing else f"{said} To act:\n{acting(run, options)}")

    def capture(
        self, dlq: DeadLetterQueue, interruption: Interruption, *, patient: bool
    ) -> tuple[int, int | None]:  # fmt: skip
        """Capture until the dlq has run dry; how many letters were new, and its newest one then (None: it has not).

        Args:
            dlq: which.
            interruption: ends it.
            patient: what an earlier capture received and did not record is waited for: order rests on it.

        Raises:
            QueueIsOutOfReach: receiving failed.
        """
        telling, new, told = Telling(self.stderr), 0, False
        telling.line(drain_output.hiding(dlq))
        while True:
            found = drain.collect(
                dlq,
                hands(interruption),
                seconds=_CAPTURE,
                heard=lambda now: heard(telling, now),
            )
            new += found.letters
            if found.trouble:
                raise QueueIsOutOfReach(f"{found.trouble} What was captured is kept; run this again to go on.")
            if found.drained or interruption() or not (found.busy or patient):
                return new, found.through if found.drained else None
            refuse_moves(dlq, telling)
            if told:
                telling.seldom(lambda: waits_for_another(dlq))
            else:
                telling.line(waits_for_another(dlq))
                told = True
            interruption.wait(_PATIENCE)

    def act(self, run: Run, options: dict[str, Any], interruption: Interruption) -> None:
        """Work on a run that is running, or leave it to the workers."""
        if options["enqueue"]:
            self.leave(run, options)
        else:
            self.work(run, options, interruption, along=forecast_plan.others(run.dlq, run))


def heard(telling: Telling, now: Captured) -> None:
    """Tell how far a capture is, once it has received anything: until then it waits for SQS, or for another capture."""
    if now.received:
        telling.seldom(lambda: f"{now.received:,} copies received, {now.letters:,} new")


def waits_for_another(dlq: DeadLetterQueue) -> str:
    """Another capture has the dlq, or one ended uncleanly: what it received comes to sight again, and when."""
    watch = dlq_status.watches(dlq.pk)[0]
    until = watch.unclean_until or watch.captured_until  # who has it may live on; if it dies, its copies stay hidden
    said = f", at the latest at {when(until)}" if until else ""
    return f"Another capture of {dlq.name} has, or had, part of its messages: waiting for them{said}."


def refuse_if_plans_wait(dlq: DeadLetterQueue, name: str) -> None:
    """Refuse to begin a run over all letters under an id that may be meant for a plan, and misspelt.

    Raises:
        CommandError: plans of the dlq wait to be started; it names them.
    """
    named = Run.objects.filter(dlq=dlq, state=RunState.PLANNED).exclude(selection__has_key=UNNAMED).order_by("pk")
    if plans := list(named.values_list("name", flat=True)):
        raise CommandError(
            f"No run is named {name}, and plans of {dlq.name} wait to be started: {', '.join(plans)}. Name one of "
            f"them; or give them up: {command('abort_run', plans[0], '--reason', 'WHY', '--confirm')}"
        )


def look_ahead(run: Run, *, by_beat: bool) -> Outlook:
    """What a plan has before it, which workers and beat or this process would replay."""
    view = conf.current()
    return forecast_plan.plan(run, count_lag=view.count_lag.total_seconds(), by_beat=by_beat, prices=view.prices)


def acting(run: Run, options: dict[str, Any]) -> str:
    """The command that acts on exactly what was planned."""
    flags = ["--enqueue"] if options["enqueue"] else []
    by = ["--by", options["by"]] if options["by"] != whoever_is_here() else []
    return command("drain_dlq", run.dlq.name, "--run", run.name, *by, *flags, "--confirm")


def how_to_go_on(run: Run, options: dict[str, Any]) -> str:
    """What a dry run says of a run that was planned or begun before."""
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return drain.standing_still(run)
    begun = "is planned" if run.state == RunState.PLANNED else f"was begun before, and {run.state}"
    return f"{run.name} {begun}. This was a dry run; to go on with it:\n{acting(run, options)}"


def run_name(text: str) -> str:
    """The type of a run's id."""
    try:
        validate_slug(text)
    except ValidationError:
        raise ArgumentTypeError(f"{text!r} is no run's id: it takes letters, digits, hyphens and underscores") from None
    if len(text) > _LONGEST_NAME:
        raise ArgumentTypeError(f"a run's id has {_LONGEST_NAME} characters at most")
    return text
