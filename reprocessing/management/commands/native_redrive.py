"""`manage.py native_redrive`."""

from __future__ import annotations

from typing import Any, assert_never

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws import pricing
from reprocessing.domain.message.arn import Named, read
from reprocessing.gateways.sqs import FASTEST, Begun, QueueAddress, depth
from reprocessing.gateways.sqs.queue_attributes import is_missing
from reprocessing.management.arguments import add_confirm, add_json, add_name, add_person, whole
from reprocessing.management.command_line import command
from reprocessing.management.console import Console, find, when
from reprocessing.management.output import native_redrive_output
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.aws.native_redrive import Cancelling, Open, Over, Refusal
from reprocessing.store.aws import aws_redrives, native_redrive_lock
from reprocessing.store.aws.native_redrive_lock import Standing

Told = dict[str, Any]


class Command(Console):
    """Have AWS move the messages of a DLQ by itself (StartMessageMoveTask).

    For bulk moves that need no order, selection or history. Meanwhile this service captures and sends nothing of
    the DLQ.

    Examples:
        native_redrive start orders --reason INC-7 --confirm
        native_redrive list orders
        native_redrive cancel orders --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        deeds = parser.add_subparsers(dest="deed", required=True, metavar="start|list|cancel")
        start = deeds.add_parser("start", help="have AWS move what is visible in the dlq")
        add_name(start)
        start.add_argument("--to", metavar="ARN", default="", help="the queue that takes it; default: where each died")
        start.add_argument(
            "--per-second", type=whole(1, FASTEST), metavar="N", help="messages a second; default: AWS finds a rate"
        )
        cancel = deeds.add_parser("cancel", help="have AWS move no more; what was moved stays moved")
        add_name(cancel)
        for one in (start, cancel):
            add_person(one)
            add_confirm(one)
            add_json(one)
        listing = deeds.add_parser("list", help="what AWS says of its newest ten, and whose the dlq is")
        add_name(listing)
        add_json(listing)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find(options["name"])
        match options["deed"]:
            case "start":
                self.start(dlq, options)
            case "cancel":
                self.cancel(dlq, options)
            case _:
                self.tell(dlq, options)

    def start(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        """Say what would be lost; with --confirm have AWS begin."""
        to, per_second = options["to"], options["per_second"]
        refuse_destination(dlq, to)
        native_redrive.look(dlq)  # of what has ended meanwhile, nobody need be told first
        found, seen = native_redrive_lock.standing(dlq.pk), depth(QueueAddress(dlq.url, dlq.region, dlq.role_arn))
        refuse(dlq, found)
        if not options["json"]:
            price = pricing.in_words(pricing.native(seen.visible, each=conf.current().prices.of(fifo=dlq.fifo)))
            self.say("\n".join(native_redrive_output.plan(dlq, found, seen, to=to, per_second=per_second, cost=price)))
        told: Told = {"dlq": dlq.name, "dry_run": not options["confirm"], "visible": seen.visible, "to": to or None}
        if options["confirm"]:
            self.begin(dlq, options)
        if options["json"]:
            self.report(
                told | {"per_second": per_second, "captured": found.captured, "lost": native_redrive_output.LOST}
            )
        elif not options["confirm"]:
            self.say("NOT STARTED: this was a dry run. AWS is asked with --confirm.")

    def begin(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        """Ask AWS, and tell what it said.

        Raises:
            CommandError: it did not begin, or is not known to have.
        """
        to, per_second = options["to"], options["per_second"]
        done = native_redrive.start(dlq, to=to, per_second=per_second, by=options["by"], reason=options["reason"])
        match done:
            case Standing():
                refuse(dlq, done)
            case Refusal(why):
                raise CommandError(f"AWS did not begin: {why}. Nothing was moved.")
            case Open(why):
                raise CommandError(
                    f"Whether AWS has begun is not known: {why}. Until its list tells, nothing of {dlq.name} is "
                    f"captured or sent: {command('native_redrive', 'list', dlq.name)}"
                )
            case Begun():
                if not options["json"]:
                    self.say(f"AWS moves its messages. How far it is: {command('native_redrive', 'list', dlq.name)}")
            case _ as never:
                assert_never(never)

    def cancel(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        """Have AWS stop."""
        if not options["confirm"]:
            self.tell(dlq, options)
            if not options["json"]:
                self.say("NOT CANCELLED: this was a dry run. AWS is told to stop with --confirm.")
            return
        said = cancelled(native_redrive.cancel(dlq, by=options["by"], reason=options["reason"]))
        if options["json"]:
            self.report({"dlq": dlq.name, "dry_run": False, "said": said})
        else:
            self.say(said)

    def tell(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        """What AWS says, and whose the dlq is by now."""
        listed = native_redrive.look(dlq)
        own = aws_redrives.of(dlq.pk)
        if options["json"]:
            said = own and {"since": own.at, "by": own.by, "reason": own.reason, "to": own.to or None}
            self.report(
                {"dlq": dlq.name, "native": said, "tasks": [native_redrive_output.in_json(one) for one in listed]}
            )
            return
        if own:
            self.say(f'{dlq.name} is AWS\'s since {when(own.at)}, as {own.by} asked ("{own.reason}").')
        else:
            self.say(f"{dlq.name} is ours: AWS moves nothing out of it.")
        self.say("\n".join(map(native_redrive_output.task, listed)) or "  AWS lists no redrive of it.")


def cancelled(done: Cancelling | Over | Refusal | Open) -> str:
    """What became of a cancel.

    Raises:
        CommandError: AWS did not stop, or is not known to.
    """
    match done:
        case Cancelling(moved):
            return f"AWS stops. {moved:,} messages were moved by then, and stay moved."
        case Over(became):
            return f"There is nothing to cancel. {became or 'AWS lists no redrive of it.'}"
        case Refusal(why):
            raise CommandError(f"AWS did not stop: {why}.")
        case Open(why):
            raise CommandError(f"Whether AWS stops is not known: {why}. Ask again.")
        case _ as never:
            assert_never(never)


def refuse(dlq: DeadLetterQueue, found: Standing) -> None:
    """Refuse a dlq that something of ours is at.

    Raises:
        CommandError: it says what, and how it ends.
    """
    if said := list(native_redrive_output.obstacles(dlq, found)):
        raise CommandError("\n".join([f"AWS cannot have {dlq.name} now. Nothing was done:", *(f"- {x}" for x in said)]))


def refuse_destination(dlq: DeadLetterQueue, to: str) -> None:
    """Refuse what AWS would refuse, before anything is claimed.

    Raises:
        CommandError: it is no queue's ARN, the dlq itself, not there, or of another account, region or type.
    """
    if not to:
        return
    found = read(to)
    if found is None or found.named is not Named.QUEUE:
        raise CommandError(f"--to takes a queue's ARN, such as arn:aws:sqs:eu-west-1:111122223333:orders; not {to!r}.")
    if to == dlq.arn:
        raise CommandError(f"--to names {dlq.name} itself.")
    own = read(dlq.arn)
    if own and (own.region, own.account) != (found.region, found.account):
        raise CommandError(
            f"--to names a queue of account {found.account} in {found.region}. AWS moves messages within one account "
            f"and region, those of {dlq.name}: {own.account} in {own.region}."
        )
    if found.fifo != dlq.fifo:
        raise CommandError(f"{dlq.name} is {'a FIFO' if dlq.fifo else 'a standard'} queue, and --to is none. AWS moves "
                           "messages between queues of one type alone.")  # fmt: skip
    if is_missing(to, dlq.role_arn):
        raise CommandError(f"--to names a queue that is not there: {to}. Check its name.")
