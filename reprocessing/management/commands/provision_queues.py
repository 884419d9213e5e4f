"""`manage.py provision_queues`."""

from __future__ import annotations

import json
import re
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws.queue_spec import FIFO, MOST_RECEIVES, Wanted, family, own, said
from reprocessing.domain.aws.queue_templates import cloudformation, terraform
from reprocessing.domain.message import arn as arns
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.gateways.sqs.provisioning import Place
from reprocessing.management.arguments import add_confirm, add_json, whole
from reprocessing.management.console import Console
from reprocessing.management.options.target_policy_options import add_role
from reprocessing.management.output import provision_output as words
from reprocessing.management.output.rule_output import OFF
from reprocessing.pipeline.aws import provision
from reprocessing.pipeline.aws.provision import Look

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.fifo)?")  # AWS: CreateQueue, QueueName
_LONGEST: Final = 80  # as above
_KEY: Final = re.compile(r"[A-Za-z0-9:/_-]{1,256}")
_FORMS: Final = {"cloudformation": cloudformation, "terraform": terraform}
ON: Final = "on"
#: What a person means as a yes or a no, and not as the name of a queue.
_YES_OR_NO: Final = frozenset({ON, OFF, "yes", "no", "true", "false", "none", "null", "default", "1", "0"})
_LONGEST_VISIBILITY: Final = 43_200


class Command(Console):
    """Create or check the queues of a redrive.

    Checks a source queue, its DLQ and its parking queue, or the service's own queues; --confirm creates missing
    queues and changes settings that differ. Deletes nothing, and keeps stricter settings. --as prints the queues
    for CloudFormation or Terraform, and reads nothing.

    Examples:
        provision_queues orders --region eu-west-1
        provision_queues orders --region eu-west-1 --as terraform
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", type=queue_name, metavar="NAME", help="the queue whose messages die")
        parser.add_argument(
            "--own", action="store_true", help="the service's own queues, too, by their configured URLs"
        )
        parser.add_argument("--fifo", action="store_true", help="they are FIFO queues; a NAME with .fifo says so, too")
        parser.add_argument("--dlq", type=clear_name, metavar="NAME", help="default: the queue's name and -dlq")
        parser.add_argument(
            "--parking", type=parking, metavar="on|off|NAME", help='"on", the default: the queue\'s name and -parking; '
            '"off": none',
        )  # fmt: skip
        parser.add_argument(
            "--max-receives", type=whole(1, MOST_RECEIVES), metavar="N",
            help="receives before a message dies; default: as it is, and 5 of a new queue",
        )  # fmt: skip
        parser.add_argument(
            "--visibility", type=whole(0, _LONGEST_VISIBILITY), metavar="SECONDS",
            help="the queue's visibility timeout; default: as it is, and 30 of a new queue",
        )  # fmt: skip
        encryption = parser.add_mutually_exclusive_group()
        encryption.add_argument("--kms", type=key, metavar="KEY", help="encrypt with this KMS key")
        encryption.add_argument("--sse", choices=["sqs"], help="encrypt with SQS's own keys; the default")
        parser.add_argument("--region", type=region, metavar="R", help="default: the environment's")
        add_role(parser, "SQS")
        parser.add_argument("--as", dest="form", choices=sorted(_FORMS), help="print them for another tool; ask nobody")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        wanted = list(asked(options))
        if options["form"]:
            if options["confirm"]:
                raise CommandError("--as prints, and --confirm acts: say one of them.")
            self.say(json.dumps(_FORMS[options["form"]]([one for _, one in wanted]), indent=2))
            return
        looks = provision.look(wanted)
        if not options["json"]:
            self.say("\n".join(words.lines(looks)))
        if refused := [one.wanted.name for one in looks if one.is_contradicted]:
            if options["json"]:
                self.report({"dry_run": True, "refused": True, "queues": words.in_json(looks)})
            raise CommandError(f"Nothing was done: what is refused above of {', '.join(refused)} is to be cured first.")
        steps = self.act(looks, options) if options["confirm"] else []
        if options["json"]:
            told = {"dry_run": not options["confirm"], "refused": False, "queues": words.in_json(looks)}
            self.report({**told, "done": steps})
        else:
            self.say(last_line(looks, acted=options["confirm"]))

    def act(self, looks: list[Look], options: dict[str, Any]) -> list[str]:
        """Do it, and tell each step as it is done.

        Raises:
            CommandError: SQS does not show all of it.
        """
        steps = []
        for step in provision.queues(looks, pause=time.sleep):
            steps.append(words.done(step))
            if not options["json"]:
                self.say(f"  {steps[-1]}")
        left = provision.look([(one.place, one.wanted) for one in looks])
        if names := ", ".join(one.wanted.name for one in left if one.is_to_be_changed or one.is_contradicted):
            raise CommandError(
                f"SQS does not show all of it yet of {names}: that takes up to 60 s, or somebody else changes them. "
                "Run this again in a minute, without --confirm first: it shows what is left."
            )
        return steps


def asked(options: dict[str, Any]) -> Iterator[tuple[Place, Wanted]]:
    """The queues that are meant, and where they are.

    Raises:
        CommandError: none is meant, or what was said of them does not fit together.
    """
    if not options["name"] and not options["own"]:
        raise CommandError("Name the queue whose messages die, or say --own for the service's own queues.")
    if options["name"]:
        where = options["region"] or configured_region()
        if not where:
            raise CommandError("No region was said. Say --region, or set AWS_DEFAULT_REGION.")
        refuse_own(options["name"], _family(options), where)
        role = "" if options["role_arn"] in {None, OFF} else options["role_arn"]
        yield from ((Place(where, role), one) for one in _family(options))
    if options["own"]:
        urls = conf.current().own_queues
        if not urls:
            raise CommandError("settings.REDRIVE names no OWN_QUEUES, so there are none to be made.")
        for address in map(QueueAddress.of, urls):
            place = Place(address.region, account=address.account)
            yield from ((place, one) for one in own(address.name, key=options["kms"] or ""))


def refuse_own(name: str, queues: list[Wanted], region: str) -> None:
    """Refuse what names a queue of the service itself, or its dlq: those are made as it needs them.

    Raises:
        CommandError: it says which, and how they are made.
    """
    addresses = [one for one in map(QueueAddress.of, conf.current().own_queues) if one.region == region]
    theirs = {one.name for address in addresses for one in own(address.name)}
    if found := sorted(theirs.intersection(one.name for one in queues)):
        raise CommandError(
            f"{name}: {', '.join(found)} belongs to the service itself, which says how it has to be. "
            "Say --own for all of its queues, without a name."
        )


def _family(options: dict[str, Any]) -> list[Wanted]:
    plain = options["name"].removesuffix(FIFO)
    ending = FIFO if options["fifo"] or options["name"].endswith(FIFO) else ""
    lot = f"{plain}-parking" if options["parking"] in {None, ON} else options["parking"]
    names = {"dlq": options["dlq"] or f"{plain}-dlq", "parking": lot}
    for option, name in names.items():
        if name.endswith(FIFO) and not ending:
            raise CommandError(f"--{option} {name} is a FIFO queue, and {plain} is none: say --fifo, or another name.")
    fitting = {of: name.removesuffix(FIFO) + ending for of, name in names.items()}
    if lot == OFF:
        fitting["parking"] = ""
    origin = Wanted(
        name=plain + ending,
        dlq=fitting["dlq"],
        key=options["kms"] or "",
        visibility=said(options["visibility"], 30),
        receives=said(options["max_receives"], 5),
        chains=options["dlq"] is not None,
    )
    queues = family(origin, parking=fitting["parking"])
    for one in queues:
        if len(one.name) > _LONGEST:
            raise CommandError(
                f"{one.name} has {len(one.name)} characters, more than {_LONGEST}: give it another name."
            )
    if len({one.name for one in queues}) < len(queues):
        raise CommandError(f"{', '.join(one.name for one in queues)}: give each of them a name of its own.")
    return list(queues)


def last_line(looks: list[Look], *, acted: bool) -> str:
    """What was done, or how to have it done."""
    if not any(one.is_to_be_changed for one in looks):
        return "All of it is as wanted: nothing to do."
    if not acted:
        return "This was a dry run: nothing was done. It is made good with --confirm."
    return "Done. SQS takes up to 60 s until all of it knows, and 15 minutes for a retention."


def queue_name(text: str) -> str:
    """The type of a queue's name."""
    if not _NAME.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} is no name of a queue: it takes letters, digits, hyphens and underscores, perhaps .fifo"
        )
    if len(text) > _LONGEST:
        raise ArgumentTypeError(f"{text!r} has {len(text):,} characters: a queue's name has {_LONGEST} at most")
    return text


def clear_name(text: str) -> str:
    """The type of the name of a queue that is not there by default; a yes or a no is none."""
    if text.lower().removesuffix(FIFO) in _YES_OR_NO:
        raise ArgumentTypeError(f"{text!r} reads as a yes or a no; give the name of a queue")
    return queue_name(text)


def parking(text: str) -> str:
    """The type of a parking queue: on, off or a name."""
    if text in {ON, OFF}:
        return text
    if text.lower().removesuffix(FIFO) in _YES_OR_NO:
        raise ArgumentTypeError(
            f"{text!r} is neither on, off nor clearly a name; say on (NAME-parking), off (no parking queue), or the "
            "name of a queue"
        )
    return queue_name(text)


def key(text: str) -> str:
    """The type of a KMS key's id, ARN or alias."""
    if not _KEY.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no KMS key; its id, its ARN or alias/NAME is one")
    return text


def region(text: str) -> str:
    """The type of a region's name."""
    if not arns.is_region(text):
        raise ArgumentTypeError(f"{text!r} is no region; eu-west-1 is one")
    return text
