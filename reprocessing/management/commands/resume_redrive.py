"""The command `manage.py resume_redrive`, which allows sends again after stop_redrive, for one DLQ or for all DLQs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.commands.stop_redrive import add_dlq_or_all, dlq_in_json, read_dlq, stop_in_json
from reprocessing.management.console import Console
from reprocessing.management.shared.stop_text import since_text
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.store.aws import aws_redrives
from reprocessing.store.safety import stops


class Command(Console):
    """Allow sends again that stop_redrive stopped, for one DLQ or for all DLQs.

    stop_redrive --all and stop_redrive NAME are separate. If both were run, messages of the DLQ are sent only after
    resume_redrive --all and resume_redrive NAME.

    Examples:
        resume_redrive orders --reason "consumer fixed" --confirm
        resume_redrive --all --reason "consumer fixed" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_dlq_or_all(parser)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = read_dlq(options)
        key = None if dlq is None else dlq.pk
        if dlq is None:
            stops.refuse_while_held()
        was = stops.stop_of(key)
        if options["confirm"]:
            follow_redrives.check_before_resuming(key)
            was = stops.resume(key, by=options["by"], reason=options["reason"])
        still = still_stopped(dlq)
        if options["json"]:
            resumed = options["confirm"] and was is not None
            said = {"dry_run": not options["confirm"], "resumed": resumed, "was": stop_in_json(was) if was else None}
            self.report({**dlq_in_json(dlq), **said, "still_stopped": still})
            return
        self.say(self.sentence(dlq, was, acted=options["confirm"]))
        for one in still:
            self.say(one)

    def sentence(self, dlq: DeadLetterQueue | None, was: stops.Stop | None, *, acted: bool) -> str:
        what = dlq.name if dlq else "Everything"
        if was is None:
            return f"{what}: not stopped, nothing to resume."
        if acted:
            return f"{what}: resumed. It was stopped {since_text(was)}."
        return f"{what}: stopped {since_text(was)}. This was a dry run; with --confirm it is resumed."


def still_stopped(dlq: DeadLetterQueue | None) -> list[str]:
    """Return a sentence for each reason why sends are still stopped, with the command that resumes them.

    `dlq` is the DLQ that was resumed. If `dlq` is None, all DLQs were resumed (--all).
    """
    if dlq is None:
        names = DeadLetterQueue.objects.filter(stopped_at__isnull=False).order_by("name").values_list("name", flat=True)
        return [f"{name} is still stopped by a stop of its own: {_resume(name)}" for name in names]
    halt, moved = stops.stop_of(None), aws_redrives.current(dlq.pk)
    native = [aws_redrives.describe(moved)] if moved else []
    if halt and halt.restored:
        return [f"Everything is held {since_text(halt)} after a restore: manage.py after_restore report", *native]
    return [f"Everything is still stopped {since_text(halt)}: {_resume('--all')}", *native] if halt else native


def _resume(which: str) -> str:
    return f"manage.py resume_redrive {which} --reason WHY --confirm"
