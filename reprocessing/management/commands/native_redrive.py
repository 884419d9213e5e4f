"""The command `manage.py native_redrive`, which starts, lists and cancels AWS's own redrive of a DLQ."""

from __future__ import annotations

from typing import Any, assert_never

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws import pricing
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.gateways.sqs import FASTEST, Begun, QueueAddress, depth
from reprocessing.gateways.sqs.queue_attributes import is_missing
from reprocessing.management.arguments import add_change_options, add_json, add_name, whole_number
from reprocessing.management.command_line import command
from reprocessing.management.command_parser import StrictParser
from reprocessing.management.console import Console, find_dlq, format_time
from reprocessing.management.output import native_redrive_output
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives, native_redrive
from reprocessing.pipeline.aws.native_redrive import Cancelling, NothingToCancel, RedriveUnknown, Refusal
from reprocessing.store.aws import aws_redrive_handover, aws_redrives
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers

Json = dict[str, Any]

_ACTIONS = (
    "start: let AWS move the messages. list: show what AWS has moved. cancel: let AWS stop. To list the options, add "
    "--help after start, list or cancel"
)


class Command(Console):
    """Let AWS itself move the messages of a DLQ to their source queues or another queue (StartMessageMoveTask).

    Use this for many messages that need no order, no selection and no record of attempts. While AWS moves the messages
    of a DLQ, this service captures and sends none of them.

    Examples:
        native_redrive start orders --reason INC-7 --confirm
        native_redrive list orders
        native_redrive cancel orders --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(
            dest="action", required=True, metavar="start|list|cancel", help=_ACTIONS, parser_class=StrictParser
        )
        start = actions.add_parser("start", help="start a native redrive")
        add_name(start)
        start.add_argument(
            "--to", metavar="ARN", default="", help="ARN of the queue to move to (default: each message's source queue)"
        )
        start.add_argument(
            "--per-second", type=whole_number(1, FASTEST), metavar="N", help="max messages/s (default: AWS chooses)"
        )
        cancel = actions.add_parser("cancel", help="cancel the native redrive; moved messages stay moved")
        add_name(cancel)
        for one in (start, cancel):
            add_change_options(one)
        listing = actions.add_parser("list", help="show the last ten native redrives")
        add_name(listing)
        add_json(listing)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["name"])
        match options["action"]:
            case "start":
                self.start(dlq, options)
            case "cancel":
                self.cancel(dlq, options)
            case _:
                self.tell(dlq, options)

    def start(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        to, per_second = options["to"], options["per_second"]
        refuse_destination(dlq, to)
        follow_redrives.read_redrives(dlq)  # also records the end of an earlier native redrive
        found = aws_redrive_handover.handover_blockers(dlq.pk)
        counts = depth(QueueAddress(dlq.url, dlq.region, dlq.role_arn))
        refuse(dlq, found)
        if not options["json"]:
            each = conf.current().prices.of(fifo=dlq.fifo)
            price = pricing.in_words(pricing.cost_of_native_redrive(counts.visible, each=each))
            self.say(
                "\n".join(native_redrive_output.plan(dlq, found, counts, to=to, per_second=per_second, cost=price))
            )
        result: Json = {"dlq": dlq.name, "dry_run": not options["confirm"], "visible": counts.visible, "to": to or None}
        if options["confirm"]:
            self.begin(dlq, options)
        if options["json"]:
            plan = {"per_second": per_second, "captured": found.captured, "lost": native_redrive_output.LOST}
            self.report(result | plan)
        elif not options["confirm"]:
            self.say("NOT STARTED: this was a dry run. Add --confirm to start.")

    def begin(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        """Start AWS's own redrive.

        Raises:
            CommandError: AWS did not start the redrive, or it is not known whether AWS started it.
        """
        to, per_second = options["to"], options["per_second"]
        done = native_redrive.start(dlq, to=to, per_second=per_second, by=options["by"], reason=options["reason"])
        match done:
            case HandoverBlockers():
                refuse(dlq, done)
            case Refusal(why):
                raise CommandError(f"AWS did not start it: {why}. Nothing was moved.")
            case RedriveUnknown(why):
                raise CommandError(
                    f"It is not known whether AWS has started it: {why}. Until that is known, nothing of {dlq.name} is "
                    f"captured or sent. To check: {command('native_redrive', 'list', dlq.name)}"
                )
            case Begun():
                if not options["json"]:
                    self.say(f"AWS moves the messages. To watch: {command('native_redrive', 'list', dlq.name)}")
            case _ as never:
                assert_never(never)

    def cancel(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        if not options["confirm"]:
            self.tell(dlq, options)
            if not options["json"]:
                self.say("NOT CANCELLED: this was a dry run. Add --confirm to cancel.")
            return
        said = cancelled(native_redrive.cancel(dlq, by=options["by"], reason=options["reason"]))
        if options["json"]:
            self.report({"dlq": dlq.name, "dry_run": False, "said": said})
        else:
            self.say(said)

    def tell(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        listed = follow_redrives.read_redrives(dlq)
        own = aws_redrives.current(dlq.pk)
        if options["json"]:
            said = own and {"since": own.at, "by": own.by, "reason": own.reason, "to": own.to or None}
            tasks = [native_redrive_output.in_json(one) for one in listed]
            self.report({"dlq": dlq.name, "native": said, "tasks": tasks})
            return
        if own:
            self.say(f'{dlq.name}: native redrive since {format_time(own.at)} by {own.by} ("{own.reason}").')
        else:
            self.say(f"{dlq.name}: no native redrive is running.")
        self.say("\n".join(map(native_redrive_output.task, listed)) or "  AWS lists no native redrive.")


def cancelled(done: Cancelling | NothingToCancel | Refusal | RedriveUnknown) -> str:
    """Return a sentence about the result of cancelling AWS's own redrive.

    Raises:
        CommandError: AWS did not cancel the redrive, or it is not known whether AWS cancelled it.
    """
    match done:
        case Cancelling(moved):
            return f"Cancelled. {moved:,} messages were moved before, and stay moved."
        case NothingToCancel(became):
            return f"Nothing to cancel. {became or 'AWS lists no native redrive.'}"
        case Refusal(why):
            raise CommandError(f"AWS did not cancel it: {why}.")
        case RedriveUnknown(why):
            raise CommandError(f"It is not known whether AWS cancelled it: {why}. Run this command again.")
        case _ as never:
            assert_never(never)


def refuse(dlq: DeadLetterQueue, found: HandoverBlockers) -> None:
    """Refuse a native redrive if something prevents it, for example that this service sends messages of the DLQ.

    Raises:
        CommandError: something prevents the native redrive. The error lists all reasons.
    """
    if said := [f"- {line}" for line in native_redrive_output.obstacles(dlq, found)]:
        first = f"Nothing was done: a native redrive of {dlq.name} is not possible now."
        raise CommandError("\n".join([first, *said]))


def refuse_destination(dlq: DeadLetterQueue, to: str) -> None:
    """Refuse a --to that AWS would refuse.

    Raises:
        CommandError: `to` is not the ARN of an existing queue, is the DLQ itself, or is a queue of another account,
            region or type (FIFO or standard).
    """
    if not to:
        return
    found = read(to)
    if found is None or found.named is not ResourceKind.QUEUE:
        raise CommandError(f"--to {to!r} is not the ARN of a queue. Example: arn:aws:sqs:eu-west-1:111122223333:orders")
    if to == dlq.arn:
        raise CommandError(f"--to is {dlq.name} itself. Give another queue, or leave out --to.")
    own = read(dlq.arn)
    if own and (own.region, own.account) != (found.region, found.account):
        raise CommandError(
            f"--to is a queue of account {found.account} in {found.region}. AWS moves messages only within the account "
            f"and region of {dlq.name}: {own.account} in {own.region}."
        )
    if found.fifo != dlq.fifo:
        kind, other = ("FIFO", "standard") if dlq.fifo else ("standard", "FIFO")
        raise CommandError(f"{dlq.name} is a {kind} queue, and --to is a {other} queue. AWS needs queues of one type.")
    if is_missing(to, dlq.role_arn):
        raise CommandError(f"--to is a queue that does not exist: {to}. Check its name.")
