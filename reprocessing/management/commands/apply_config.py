"""The command `manage.py apply_config`, which applies a configuration file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.configuration.document import Document, Problem
from reprocessing.domain.configuration.keys import State
from reprocessing.management.arguments import add_by, add_confirm, add_json, not_empty
from reprocessing.management.configuration.file_reader import read_bytes, read_file
from reprocessing.management.console import Console
from reprocessing.management.output import plan_output
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.pipeline.configuration import apply as applying
from reprocessing.pipeline.configuration.export_text import shown
from reprocessing.pipeline.configuration.plan import Plan, make_plan

_TRIES: Final = 3  #: max tries to apply the file, if somebody else changes the configuration meanwhile
_MARKED: Final = "No settings changed. The file now manages these objects."


class Command(Console):
    """Apply a configuration file: add and change DLQs, targets, rules and other objects as the file describes.

    Without --confirm, only shows the plan. If the file has no section for a kind of object, such as rules, objects of
    this kind stay unchanged. Objects that are missing in a section of the file are kept, unless --prune is given. All
    changes are made in one transaction. If the file has a problem, nothing changes.

    Examples:
        apply_config redrive.yaml
        apply_config redrive.yaml --source 4f1c2ab --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=not_empty, metavar="FILE", help="the configuration file; export_config prints such a file"
        )
        parser.add_argument(
            "--prune", action="store_true", help="also remove stored objects that are missing in a section of the file"
        )
        parser.add_argument(
            "--source", type=not_empty, metavar="COMMIT",
            help="version of the file, such as a commit, for the audit log",
        )  # fmt: skip
        add_by(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found, given, problems = read_file(read_bytes(options["file"]), conf.current())
        plan = self._planned(options, found, given, problems)
        acted = False
        for _ in range(_TRIES if options["confirm"] and not plan.is_empty else 0):
            acted = applying.apply(plan, by=options["by"], source=options["source"] or "")
            if acted:
                break
            plan = self._planned(options, found, given, problems)
            if plan.is_empty:
                break
        if options["confirm"] and not acted and not plan.is_empty:
            raise CommandError("Nothing was changed: somebody else is changing the configuration. Run this again.")
        self._show(plan, options, acted=acted)

    def reason_of(self, options: dict[str, Any]) -> str:
        return f"apply_config, source: {options['source']}" if options["source"] else "apply_config"

    def _planned(
        self, options: dict[str, Any], found: Document, given: State, problems: list[Problem]
    ) -> Plan:  # fmt: skip
        """Return the plan that applies the file.

        Args:
            options: options of the command.
            found: the parsed text of the file.
            given: the settings that the file gives.
            problems: problems that were found when the file was read.

        Raises:
            CommandError: the file or its plan has problems; the error lists them.
        """
        refused = {problem.path[:2] for problem in problems}
        plan = None
        if found.root:
            progress = _progress(ProgressLog(self.stderr))
            plan = make_plan(given, conf.current(), prune=options["prune"], refused=refused, progress=progress)
        located = [*problems, *(found.located(problem) for problem in (plan.problems if plan else ()))]
        if located or plan is None:
            lines = "\n".join(plan_output.problem_lines(options["file"], located))
            raise CommandError(
                f"{lines}\nNothing was changed: {counted(len(located), 'problem')} in {options['file']}."
            )
        return plan

    def _show(self, plan: Plan, options: dict[str, Any], *, acted: bool) -> None:
        if options["json"]:
            self.report(plan_output.in_json(plan, acted=acted))
            return
        for line in plan_output.plan_lines(plan, shown):
            self.say(line)
        if plan.is_empty:
            self.say("No changes.")
        elif not plan.changes:
            self.say(_MARKED if acted else "No settings change. Add --confirm to let the file manage these objects.")
        elif acted:
            self.say(f"Applied: {plan_output.counts(plan.changes)}.")
            for note in plan.still_sending():
                self.say(note)
        else:
            self.say(f"This was a dry run. Add --confirm to apply it: {plan_output.counts(plan.changes)}.")


def _progress(log: ProgressLog) -> Callable[[int, int], None]:
    return lambda done, of: log.line_if_due(lambda: f"{done:,} of {of:,} DLQs examined")
