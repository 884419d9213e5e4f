"""What a person may say of targets: how letters get there, what it takes to call them delivered, and how fast."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import AnswersAreUnclear, QueueIsOutOfReach
from reprocessing.domain.message import arn
from reprocessing.domain.targets import http_responses as meanings
from reprocessing.domain.targets.webhook_headers import is_media_type
from reprocessing.management.console import number, whole
from reprocessing.management.output.rule_output import OFF
from reprocessing.management.shared.rule_command import or_off
from reprocessing.models import Target
from reprocessing.models.target import FASTEST, FORTNIGHT, LONGEST_ANSWER, SLOWEST, Advance, Proof
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.targets import targets

#: Options of a target's pace and outcome, by the names of the fields they fill.
PACE = ("proof", "advance", "rate", "burst", "window", *targets.BRAKES)
#: Options of how letters get there, likewise.
REACH = ("timeout", "answers", "content_type", "secret", "role_arn", "region", "refires")
#: What "off" stands for, where that is not nothing.
WITHOUT = {
    "parking_url": "", "ramp_from": 1.0, "message_type": "", "tenant": "", "answers": "", "content_type": "",
    "secret": "", "role_arn": "",
}  # fmt: skip

_SHORTEST_ANSWER = 0.1


def said(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What was said on the command line, by the names of fields; what was not is not in it."""
    given = {one: options[one] for one in names if options[one] is not None}
    return {one: WITHOUT.get(one) if value == OFF else value for one, value in given.items()}


def add_outcome(parser: CommandParser) -> None:
    """What it takes to call a letter delivered, and what a target bears."""
    parser.add_argument(
        "--outcome", dest="proof", choices=Proof.values,
        help="default: absence where a watched dlq lies behind the target, else accepted",
    )  # fmt: skip
    parser.add_argument(
        "--advance", choices=Advance.values,
        help="when a lane's next letter may go; default: settled for keyed standard queues, else accepted",
    )  # fmt: skip
    parser.add_argument(
        "--window", type=number(0, FORTNIGHT, above=True), metavar="SECONDS",
        help="how long a failed letter may take to come back, or a consumer to say what became of one; default: "
        "visibility timeout x (maxReceiveCount + 1)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=or_off(number(SLOWEST, FASTEST)), metavar="R",
        help='letters a second to each target, by all workers together; default: 10; "off": no limit',
    )  # fmt: skip
    parser.add_argument(
        "--burst", type=or_off(number(1, FASTEST)), metavar="N",
        help='letters at once; default ("off"): one second of rate',
    )  # fmt: skip


def add_reach(parser: CommandParser) -> None:
    """How letters get to a target."""
    parser.add_argument(
        "--timeout", type=number(_SHORTEST_ANSWER, LONGEST_ANSWER), metavar="SECONDS",
        help="how long an endpoint or a function may take to answer; default: 30, of a function 60",
    )  # fmt: skip
    parser.add_argument(
        "--answers", type=or_off(answers), metavar="WORDS",
        help='what an endpoint\'s status codes mean, as in "409=success 4xx=retry": success, retry, wait or poison',
    )  # fmt: skip
    parser.add_argument(
        "--content-type", type=or_off(content_type), metavar="TYPE",
        help='of what an endpoint is sent; default ("off"): by the letter',
    )  # fmt: skip
    parser.add_argument(
        "--secret", metavar="NAME", help='the one of REDRIVE_SECRETS that signs what an endpoint is sent; "off"'
    )
    parser.add_argument(
        "--region", type=region, metavar="REGION", help="where it is, or its alarms are; default: by its ARN"
    )
    parser.add_argument(
        "--refire", dest="refires", type=whole(0), metavar="N",
        help="publish to a topic or a bus again: N others, who had each letter already, get it again",
    )  # fmt: skip
    add_role(parser, "the target")


def add_role(parser: CommandParser, of: str) -> None:
    """The role of another account."""
    parser.add_argument(
        "--role", dest="role_arn", type=or_off(role), metavar="ARN",
        help=f'the role under which {of} is used, as in another account; default ("off"): that of this process',
    )  # fmt: skip


def add_to(parser: CommandParser) -> None:
    """Where letters go instead of back."""
    parser.add_argument(
        "--to", type=str, metavar="TARGET",
        help="where letters go instead of back: a target that add_target knows, or the URL of a queue; of the origins "
        'named with it, or else of all; "off": back to what they died in',
    )  # fmt: skip


def destination(text: str) -> Target:
    """The target that is meant: one that is known, or a queue, perhaps without a row yet.

    Raises:
        CommandError: there is no such target.
        TargetIsUnclear: it could be several, or is none.
    """
    found = examine.known(text)
    if found is not None:
        return found
    try:
        return examine.queue(text)
    except QueueIsOutOfReach as error:
        raise CommandError(
            f"{text} is not known as a target, and cannot be reached as a queue ({error}) Add an endpoint, a function, "
            f"a topic or a bus first: manage.py add_target {text} --confirm"
        ) from error


def answers(text: str) -> str:
    """The type of what status codes mean, in its plainest form."""
    try:
        return str(meanings.parse(text))
    except AnswersAreUnclear as error:
        raise ArgumentTypeError(str(error)) from error


def content_type(text: str) -> str:
    """The type of a content type."""
    if not is_media_type(text):
        raise ArgumentTypeError(f"{text!r} is no content type; application/json is one")
    return text


def role(text: str) -> str:
    """The type of a role's ARN."""
    if not arn.is_role(text):
        raise ArgumentTypeError(f"{text!r} is no role's ARN; arn:aws:iam::111122223333:role/redrive is one")
    return text


def region(text: str) -> str:
    """The type of a region's name."""
    if not arn.is_region(text):
        raise ArgumentTypeError(f"{text!r} is no region; eu-west-1 is one")
    return text
