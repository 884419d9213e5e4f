"""The command `manage.py stop_redrive`, which stops sends for one DLQ or for all DLQs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.shared.stop_text import since_text
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.store.aws import aws_redrives
from reprocessing.store.safety import stops


class Command(Console):
    """Stop sending messages of one DLQ, or of all DLQs.

    Takes effect on all workers within two seconds, and lasts until resume_redrive. Sends in progress finish, and their
    results are recorded. Other messages keep their state. If one DLQ in mode automatic is stopped, its new messages are
    not captured: they stay in SQS.

    Examples:
        stop_redrive orders --reason "consumer is down" --confirm
        stop_redrive --all --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_dlq_or_all(parser)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = read_dlq(options)
        key = None if dlq is None else dlq.pk
        if options["confirm"]:
            stop: stops.Stop | None = stops.stop(key, by=options["by"], reason=options["reason"])
        else:
            stop = stops.stop_of(key)
        if options["json"]:
            said = stop_in_json(stop) if stop else {}
            self.report({**dlq_in_json(dlq), "dry_run": not options["confirm"], "stopped": stop is not None, **said})
        else:
            self.say(sentence(dlq, stop))
            for one in aws_redrives.all_current():
                if key in {None, one.dlq_id}:
                    self.say(aws_goes_on(DeadLetterQueue.objects.get(pk=one.dlq_id)))
            if dlq is not None and dlq.mode == Mode.AUTOMATIC:
                self.say(f"While {dlq.name} is stopped, new messages stay in SQS, until their retention ends.")


def aws_goes_on(dlq: DeadLetterQueue) -> str:
    """Return a sentence that AWS's own redrive of the DLQ continues despite stop_redrive, and how to cancel it."""
    cancel = f"manage.py native_redrive cancel {dlq.name} --reason WHY --confirm"
    return f"A native redrive of {dlq.name} by AWS continues. To cancel it: {cancel}"


def sentence(dlq: DeadLetterQueue | None, stop: stops.Stop | None) -> str:
    """Return a sentence that says whether sends are stopped.

    If `dlq` is None, the sentence is about all DLQs. `stop` says who stopped sends, by this command or before. If
    `stop` is None, this was a dry run, and sends are not stopped.
    """
    what = dlq.name if dlq else "Everything"
    if stop is None:
        return f"NOT STOPPED: this was a dry run. {what} is stopped with --confirm."
    if stop.new:
        resume = f"manage.py resume_redrive {dlq.name if dlq else '--all'} --reason WHY --confirm"
        return f"{what} is stopped: nothing is sent. To resume: {resume}"
    return f"{what} was stopped already, {since_text(stop)}: nothing to change."


def add_dlq_or_all(parser: CommandParser) -> None:
    """Add the arguments NAME (a DLQ) and --all. A user gives one of them."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the DLQ, as given to add_dlq")
    parser.add_argument("--all", action="store_true", help="all DLQs, also those that are added later")


def read_dlq(options: dict[str, Any]) -> DeadLetterQueue | None:
    """Return the DLQ that the user named, or None for --all.

    Raises:
        CommandError: the user gave both a name and --all, or neither; or no DLQ has the name.
    """
    if options["all"] == bool(options["name"]):
        raise CommandError("Give the name of a DLQ, or --all.")
    return None if options["all"] else find_dlq(options["name"])


def dlq_in_json(dlq: DeadLetterQueue | None) -> dict[str, str | None]:
    """Return the name of the DLQ as JSON; null stands for all DLQs."""
    return {"dlq": dlq.name if dlq else None}


def stop_in_json(stop: stops.Stop) -> dict[str, object]:
    """Return as JSON who stopped sends, when and why. `new` is false if sends were stopped before this command."""
    return {"new": stop.new, "since": stop.since, "by": stop.by, "reason": stop.reason}
