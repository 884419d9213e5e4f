"""What the commands that pause, resume and abort runs share."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.output import drain_output
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import progress
from reprocessing.store.runs.run_transitions import Moved

_NAMED = 5


class Operator(Console):
    """A command that moves a run: a dry run until told otherwise, and never out of a state that it does not know."""

    deed = ""  #: what becomes of the run: paused
    out_of: tuple[RunState, ...] = ()  #: where it may stand before

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, who, why."""
        parser.add_argument("run", metavar="RUN", help="the run's id (see show_runs)")
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        """Tell what would be, or do it."""
        run = find_run(options["run"])
        self.refuse(run)
        if options["confirm"]:
            moved = self.act(run, options)
            run.refresh_from_db()
            if moved is None:  # somebody else was quicker
                self.refuse(run)
        else:
            moved = Moved(run.state, run.stopped_by, run.why)
        told = self.told(run, moved, options) if moved else []
        if options["json"]:
            self.report(self.in_json(run, moved, options, told))
        else:
            self.say("\n".join(told))

    def act(self, run: Run, options: dict[str, Any]) -> Moved | None:
        """Move the run; None when it stands elsewhere by now."""
        raise NotImplementedError

    def told(self, run: Run, was: Moved, options: dict[str, Any]) -> list[str]:
        """What was done, or would be, line by line."""
        raise NotImplementedError

    def refuse(self, run: Run) -> None:
        """Refuse a run that stands elsewhere.

        Raises:
            CommandError: it says where.
        """
        if run.state not in self.out_of:
            said = f'; it was {run.state} by {run.stopped_by} ("{run.why}")' if run.why else ""
            allowed = " or ".join(self.out_of)
            raise CommandError(f"{run.name} is {run.state}; only one that is {allowed} can be {self.deed}{said}.")

    def in_json(self, run: Run, was: Moved | None, options: dict[str, Any], told: list[str]) -> dict[str, Any]:
        """The answer for programs."""
        return {
            "run": run.name,
            "dlq": run.dlq.name,
            "dry_run": not options["confirm"],
            "state": run.state,
            "was": was and {"state": was.state, "by": was.by or None, "why": was.why or None},
            "told": told,
            "open": progress.tally(run.pk).open,
        }


def find_run(name: str, *, standing: bool = True) -> Run:
    """The run of this id.

    Raises:
        CommandError: there is none, or it is a dlq's standing feed where that is not meant.
    """
    run = Run.objects.filter(name=name).select_related("dlq").first()
    if run is None:
        last = Run.objects.filter(kind=RunKind.DRAIN).order_by("-pk").values_list("name", flat=True)[:_NAMED]
        there_are = (
            f"The last ones: {', '.join(last)}."
            if last
            else "None has been begun yet. Plan one: manage.py drain_dlq NAME, a dry run."
        )
        raise CommandError(f'No run has the id "{name}". {there_are}')
    if run.kind == RunKind.STANDING and not standing:
        raise CommandError(
            f"This is the standing run of {run.dlq.name}, which beat feeds. Watch it with "
            f"manage.py redrive_status {run.dlq.name} --watch."
        )
    return run


def letters(run: Run) -> str:
    """What the run has come to, in a sentence."""
    return f"{run.name}: {drain_output.progress(progress.tally(run.pk))}."
