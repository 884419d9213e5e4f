"""The command `manage.py provision_queues`, which creates or checks SQS queues."""

from __future__ import annotations

import json
import re
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws.queue_spec import (
    FIFO,
    MOST_RECEIVES,
    WantedQueue,
    number_or_default,
    queue_family,
    service_queues,
)
from reprocessing.domain.aws.queue_templates import cloudformation, terraform
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.gateways.sqs.provisioning import QueueLocation
from reprocessing.management.arguments import OFF, add_confirm, add_json, matching, whole_number
from reprocessing.management.command_line import command
from reprocessing.management.console import Console
from reprocessing.management.options.target_policy_options import add_role, read_region
from reprocessing.management.output import provision_output as words
from reprocessing.pipeline.aws import provision
from reprocessing.pipeline.aws.provision import QueueComparison

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.fifo)?")  # source: AWS, CreateQueue, QueueName
_LONGEST: Final = 80  # source: AWS, CreateQueue
_KEY: Final = re.compile(r"[A-Za-z0-9:/_-]{1,256}")
_FORMS: Final = {"cloudformation": cloudformation, "terraform": terraform}
ON: Final = "on"
#: Words that mean yes or no, and are not accepted as names of queues.
_MISTYPED: Final = frozenset({"of", "fo", "oof", "offf", "onn", "oon"})
_YES_OR_NO: Final = frozenset({ON, OFF, "yes", "no", "true", "false", "none", "null", "default", "1", "0"})
_LONGEST_VISIBILITY: Final = 43_200  # seconds: 12 h; source: AWS, CreateQueue, VisibilityTimeout


key = matching(_KEY.fullmatch, "a KMS key: its id, its ARN or alias/NAME", "alias/orders")


class Command(Console):
    """Create or check SQS queues: a source queue, its DLQ and its parking queue, or the service's own queues.

    A parking queue gets a copy of each parked message. Without --confirm, shows which queues are missing, and which
    settings of existing queues would change. --confirm creates and changes them. No queue is deleted, no retention is
    shortened, and no KMS key or redrive policy is replaced. --as prints a template for CloudFormation or Terraform, and
    sends no request to AWS.

    Examples:
        provision_queues orders --region eu-west-1
        provision_queues orders --region eu-west-1 --as terraform
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", type=queue_name, metavar="NAME", help="name of the source queue")
        parser.add_argument(
            "--own",
            action="store_true",
            help="create or check the service's own queues (OWN_QUEUES in settings.REDRIVE)",
        )
        parser.add_argument(
            "--fifo", action="store_true", help="make the queues FIFO queues; not needed if NAME ends with .fifo"
        )
        parser.add_argument("--dlq", type=clear_name, metavar="NAME", help="name of the DLQ (default: NAME-dlq)")
        parser.add_argument(
            "--parking",
            type=parking,
            metavar="on|off|NAME",
            help="on: with a parking queue NAME-parking; off: without a parking queue; or the name of the parking "
            "queue (default: on)",
        )
        parser.add_argument(
            "--max-receives", type=whole_number(1, MOST_RECEIVES), metavar="N",
            help="maxReceiveCount of the source queue (default: unchanged, new queues: 5)",
        )  # fmt: skip
        parser.add_argument(
            "--visibility", type=whole_number(0, _LONGEST_VISIBILITY), metavar="SECONDS",
            help="visibility timeout of the source queue (default: unchanged, new queues: 30)",
        )  # fmt: skip
        encryption = parser.add_mutually_exclusive_group()
        encryption.add_argument(
            "--kms", type=key, metavar="KEY", help="encrypt the messages of the queues with this KMS key"
        )
        encryption.add_argument(
            "--sse", choices=["sqs"], help="encrypt the messages of the queues with keys that SQS owns (default)"
        )
        parser.add_argument(
            "--region", type=read_region, metavar="R", help="AWS region of the queues (default: AWS_DEFAULT_REGION)"
        )
        add_role(parser, "SQS")
        parser.add_argument(
            "--as", dest="form", choices=sorted(_FORMS), help="print a template of the queues; send no request to AWS"
        )
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        wanted = list(asked(options))
        if options["form"]:
            if options["confirm"]:
                raise CommandError("--as prints a template, --confirm changes queues. Leave out one of them.")
            self.say(json.dumps(_FORMS[options["form"]]([one for _, one in wanted]), indent=2))
            return
        comparisons = provision.compare_queues(wanted)
        if not options["json"]:
            self.say("\n".join(words.lines(comparisons)))
        if refused := [one.wanted.name for one in comparisons if one.is_contradicted]:
            if options["json"]:
                self.report({"dry_run": True, "refused": True, "queues": words.in_json(comparisons)})
            raise CommandError(f"Nothing was done. Fix what is REFUSED above first: {', '.join(refused)}.")
        steps = self.act(comparisons, options) if options["confirm"] else []
        if options["json"]:
            result = {"dry_run": not options["confirm"], "refused": False, "queues": words.in_json(comparisons)}
            self.report({**result, "done": steps})
        else:
            self.say(last_line(comparisons, acted=options["confirm"]))
            if options["confirm"]:
                self.say("\n".join(next_lines(wanted)))

    def act(self, comparisons: list[QueueComparison], options: dict[str, Any]) -> list[str]:
        """Create and change the queues, show each step, and return the steps as lines of text.

        Raises:
            CommandError: SQS does not show all changes yet, or something else changes the queues.
        """
        steps = []
        for step in provision.apply_steps(comparisons, pause=time.sleep):
            steps.append(words.done(step))
            if not options["json"]:
                self.say(f"  {steps[-1]}")
        left = provision.compare_queues([(one.place, one.wanted) for one in comparisons])
        if names := ", ".join(one.wanted.name for one in left if one.is_to_be_changed or one.is_contradicted):
            raise CommandError(
                f"SQS does not show all changes of {names} yet: this takes up to 60 s, or something else changes them. "
                "Run this again in a minute, first without --confirm: it shows what is left."
            )
        return steps


def asked(options: dict[str, Any]) -> Iterator[tuple[QueueLocation, WantedQueue]]:
    """Yield the queues that the options describe, each with its region, account and role.

    Raises:
        CommandError: no queue was named, or the options contradict each other.
    """
    if not options["name"] and not options["own"]:
        raise CommandError("Give the name of the source queue, or --own for the service's own queues.")
    if options["name"]:
        where = options["region"] or configured_region()
        if not where:
            raise CommandError("No AWS region is set. Add --region, or set AWS_DEFAULT_REGION.")
        refuse_own(options["name"], _family(options), where)
        role = "" if options["role_arn"] in {None, OFF} else options["role_arn"]
        yield from ((QueueLocation(where, role), one) for one in _family(options))
    if options["own"]:
        urls = conf.current().own_queues
        if not urls:
            raise CommandError("There are no queues of the service's own: OWN_QUEUES of settings.REDRIVE is empty.")
        for address in map(QueueAddress.of, urls):
            place = QueueLocation(address.region, account=address.account)
            yield from ((place, one) for one in service_queues(address.name, key=options["kms"] or ""))


def refuse_own(name: str, queues: list[WantedQueue], region: str) -> None:
    """Check that the queues are not the service's own queues or their DLQs, whose attributes the service sets.

    Raises:
        CommandError: a queue has the name of one of the service's own queues, or of its DLQ, in this region.
    """
    addresses = [one for one in map(QueueAddress.of, conf.current().own_queues) if one.region == region]
    theirs = {one.name for address in addresses for one in service_queues(address.name)}
    if found := sorted(theirs.intersection(one.name for one in queues)):
        raise CommandError(
            f"{name}: {', '.join(found)} belongs to the service itself, which sets its attributes. "
            "Use --own, without a name, for all of its queues."
        )


def _family(options: dict[str, Any]) -> list[WantedQueue]:
    plain = options["name"].removesuffix(FIFO)
    ending = FIFO if options["fifo"] or options["name"].endswith(FIFO) else ""
    lot = f"{plain}-parking" if options["parking"] in {None, ON} else options["parking"]
    names = {"dlq": options["dlq"] or f"{plain}-dlq", "parking": lot}
    for option, name in names.items():
        if name.endswith(FIFO) and not ending:
            raise CommandError(
                f"--{option} {name} is a FIFO queue, and {plain} is not. Add --fifo, or give another name."
            )
    fitting = {of: name.removesuffix(FIFO) + ending for of, name in names.items()}
    if lot == OFF:
        fitting["parking"] = ""
    source = WantedQueue(
        name=plain + ending,
        dlq=fitting["dlq"],
        key=options["kms"] or "",
        visibility=number_or_default(options["visibility"], 30),
        receives=number_or_default(options["max_receives"], 5),
        chains=options["dlq"] is not None,
    )
    queues = queue_family(source, parking=fitting["parking"])
    for one in queues:
        if len(one.name) > _LONGEST:
            raise CommandError(
                f"{one.name} has {len(one.name)} characters, more than {_LONGEST}. Give it a shorter name."
            )
    if len({one.name for one in queues}) < len(queues):
        raise CommandError(
            f"{', '.join(one.name for one in queues)}: two queues have the same name. Give each another name."
        )
    return list(queues)


def last_line(comparisons: list[QueueComparison], *, acted: bool) -> str:
    """Return a sentence about what was done with the queues, or what --confirm would do."""
    if not any(one.is_to_be_changed for one in comparisons):
        return "All queues are as wanted: nothing to change."
    if not acted:
        return "This was a dry run: nothing was changed. Add --confirm to create and change these."
    return "Done. Changes take effect in SQS within 60 s, a new retention within 15 minutes."


def next_lines(wanted: list[tuple[QueueLocation, WantedQueue]]) -> Iterator[str]:
    """Yield, for each DLQ among the created queues, its URL and the command that registers it."""
    names = {one.dlq: one.name.removesuffix(FIFO) for _, one in wanted if one.dlq}
    for one in provision.compare_queues([pair for pair in wanted if pair[1].name in names]):
        if one.address is not None:
            add = command("add_dlq", names[one.wanted.name], "--url", one.address.url, "--confirm")
            yield f"URL of the DLQ: {one.address.url}"
            yield f"To register the DLQ: {add}"


def queue_name(text: str) -> str:
    """Read the name of an SQS queue: at most 80 letters, digits, hyphens and underscores, perhaps with .fifo."""
    if not _NAME.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} is not a queue name: use letters, digits, hyphens and underscores, with or without .fifo"
        )
    if len(text) > _LONGEST:
        raise ArgumentTypeError(f"{text!r} has {len(text):,} characters; a queue name has at most {_LONGEST}")
    return text


def clear_name(text: str) -> str:
    """Read the name of a queue. Refuse words that mean yes or no, such as `on`: they are not meant as names."""
    if text.lower().removesuffix(FIFO) in _YES_OR_NO:
        raise ArgumentTypeError(f"{text!r} means yes or no; give the name of a queue")
    return queue_name(text)


def parking(text: str) -> str:
    """Read the value of --parking: on, off or the name of a queue."""
    if text in {ON, OFF}:
        return text
    word = text.lower().removesuffix(FIFO)
    if word in _YES_OR_NO or word in _MISTYPED:
        raise ArgumentTypeError(
            f"{text!r} is ambiguous; give on (NAME-parking), off (no parking queue), or the name of a queue"
        )
    return queue_name(text)
