"""The base class of pause_run, resume_run and abort_run, and the search for a run by its id."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.output import run_result_output
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.runs import run_status
from reprocessing.store.runs import progress
from reprocessing.store.runs.run_transitions import RunBefore

_NAMED = 5  #: max runs that the error for an unknown run names


class RunCommand(Console):
    """A command that changes the state of a run."""

    done_word = ""  #: the change as a past participle, such as paused
    allowed_states: tuple[RunState, ...] = ()  #: states of a run in which the command is possible

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the run's id, and --by, --reason, --confirm and --json."""
        parser.add_argument("run", metavar="RUN", help="id of the run, as show_runs prints it")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        """With --confirm, change the state of the run; else show what would be changed."""
        run = find_run(options["run"])
        self.refuse(run)
        if options["confirm"]:
            moved = self.change(run, options)
            run.refresh_from_db()
            if moved is None:  # somebody else changed the state first
                self.refuse(run)
        else:
            moved = RunBefore(run.state, run.stopped_by, run.why)
        lines = self.result_lines(run, moved, options) if moved else []
        if options["json"]:
            self.report(self.in_json(run, moved, options, lines))
        else:
            self.say("\n".join(lines))

    def change(self, run: Run, options: dict[str, Any]) -> RunBefore | None:
        """Change the state of the run, and return its former state, or None if somebody else changed the run first."""
        raise NotImplementedError

    def result_lines(self, run: Run, was: RunBefore, options: dict[str, Any]) -> list[str]:
        """Return lines about what was done to the run or, in a dry run, would be done. `was` is its former state."""
        raise NotImplementedError

    def refuse(self, run: Run) -> None:
        """Check that the state of the run allows the command.

        Raises:
            CommandError: the state is not in `allowed_states`.
        """
        if run.state not in self.allowed_states:
            said = f' It was {run.state} by {run.stopped_by} ("{run.why}").' if run.why else ""
            allowed = " or ".join(self.allowed_states)
            raise CommandError(
                f"{run.name} is {run.state}. Only a run that is {allowed} can be {self.done_word}.{said}"
            )

    def in_json(self, run: Run, was: RunBefore | None, options: dict[str, Any], lines: list[str]) -> dict[str, Any]:
        """Return as JSON the run's former and present state, the printed lines, and the number of open messages."""
        return {
            "run": run.name,
            "dlq": run.dlq.name,
            "dry_run": not options["confirm"],
            "state": run.state,
            "was": was and {"state": was.state, "by": was.by or None, "why": was.why or None},
            "told": lines,
            "open": progress.count_unfinished(run.pk).open,
        }


def find_run(name: str, *, automatic: bool = True) -> Run:
    """Return the run with this id.

    Raises:
        CommandError: no run has this id; or `automatic` is false, and the run is the automatic run of a DLQ.
    """
    run = Run.objects.filter(name=name).select_related("dlq").first()
    if run is None:
        last = Run.objects.filter(kind=RunKind.DRAIN).order_by("-pk").values_list("name", flat=True)[:_NAMED]
        there_are = f"The last runs: {', '.join(last)}." if last else "There are no runs."
        raise CommandError(
            f'No run has the id "{name}". {there_are} To plan a run: manage.py drain_dlq NAME, a dry run.'
        )
    if run.kind == RunKind.AUTOMATIC and not automatic:
        raise CommandError(
            f"This is the automatic run of {run.dlq.name}, which beat continues. To watch it: "
            f"manage.py redrive_status {run.dlq.name} --watch"
        )
    return run


def run_progress(run: Run) -> str:
    """Return a line with the number of the run's messages in each state."""
    return f"{run.name}: {run_result_output.progress_text(run_status.letter_counts(run))}."
