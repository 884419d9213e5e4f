"""Options of targets: connection, outcome, rate."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import AnswersAreUnclear, QueueIsOutOfReach
from reprocessing.domain.message import arn
from reprocessing.domain.targets import http_responses as meanings
from reprocessing.domain.targets.webhook_headers import is_media_type
from reprocessing.management.arguments import matching, number, whole
from reprocessing.management.output.rule_output import OFF
from reprocessing.management.shared.rule_command import or_off
from reprocessing.models import Target
from reprocessing.models.target import FASTEST, FORTNIGHT, LONGEST_ANSWER, SLOWEST, Advance, Proof
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.targets import targets

#: Fields of a target's rate and outcome.
PACE = ("proof", "advance", "rate", "burst", "window", *targets.BRAKES)
#: Fields of a target's connection.
REACH = ("timeout", "answers", "content_type", "secret", "role_arn", "region", "refires")
#: The value that "off" sets, if it is not None.
WITHOUT = {
    "parking_url": "", "ramp_from": 1.0, "message_type": "", "tenant": "", "answers": "", "content_type": "",
    "secret": "", "role_arn": "",
}  # fmt: skip

_SHORTEST_ANSWER = 0.1


content_type = matching(is_media_type, "a content type", "application/json")
role = matching(arn.is_role, "the ARN of a role", "arn:aws:iam::111122223333:role/redrive")
region = matching(arn.is_region, "a region", "eu-west-1")


def answers(text: str) -> str:
    """Read meanings of status codes."""
    try:
        return str(meanings.parse(text))
    except AnswersAreUnclear as error:
        raise ArgumentTypeError(str(error)) from error


def said(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields that were given on the command line."""
    given = {name: options[name] for name in names if options[name] is not None}
    return {name: WITHOUT.get(name) if value == OFF else value for name, value in given.items()}


def add_outcome(parser: CommandParser) -> None:
    """Add the options of outcome and rate."""
    parser.add_argument(
        "--outcome", dest="proof", choices=Proof.values,
        help="what proves delivery (default: absence if the target has a watched DLQ, else accepted)",
    )  # fmt: skip
    parser.add_argument(
        "--advance", choices=Advance.values,
        help="when the key's next message is sent (default: settled for standard queues with a key, else accepted)",
    )  # fmt: skip
    parser.add_argument(
        "--window", type=number(0, FORTNIGHT, above=True), metavar="SECONDS",
        help="time for a failed message to return, or for a consumer to report (default: visibility timeout x "
        "(maxReceiveCount + 1))",
    )  # fmt: skip
    add_rate(parser, "10")


def add_rate(parser: CommandParser, default: str) -> None:
    """Add --rate and --burst."""
    parser.add_argument(
        "--rate", type=or_off(number(SLOWEST, FASTEST)), metavar="R",
        help=f"messages/s, of all workers together, or off (default: {default})",
    )  # fmt: skip
    parser.add_argument(
        "--burst", type=or_off(number(1, FASTEST)), metavar="N",
        help="messages at once, or off (default: off, one second of the rate)",
    )  # fmt: skip


def add_reach(parser: CommandParser) -> None:
    """Add the options of the connection."""
    parser.add_argument(
        "--timeout", type=number(_SHORTEST_ANSWER, LONGEST_ANSWER), metavar="SECONDS",
        help="time to answer, for endpoints and functions (default: 30, functions: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--answers", type=or_off(answers), metavar="WORDS",
        help="meaning of status codes, such as '409=success 4xx=retry': success, retry, wait or poison",
    )  # fmt: skip
    parser.add_argument(
        "--content-type", type=or_off(content_type), metavar="TYPE",
        help="Content-Type for an endpoint, or off (default: off, by the message)",
    )  # fmt: skip
    parser.add_argument(
        "--secret", metavar="NAME", help="name in REDRIVE_SECRETS of the secret that signs requests, or off"
    )
    parser.add_argument(
        "--region", type=region, metavar="REGION", help="AWS region of the target (default: from its ARN)"
    )
    parser.add_argument(
        "--refire", dest="refires", type=whole(0), metavar="N",
        help="accept that N other subscribers of a topic or bus receive each message again",
    )  # fmt: skip
    add_role(parser, "the target")


def add_role(parser: CommandParser, of: str) -> None:
    """Add --role."""
    parser.add_argument(
        "--role", dest="role_arn", type=or_off(role), metavar="ARN",
        help=f"IAM role to assume for {of}, or off (default: off, the role of this process)",
    )  # fmt: skip


def add_to(parser: CommandParser) -> None:
    """Add --to."""
    parser.add_argument(
        "--to", type=str, metavar="TARGET",
        help="target for messages of the given source queues, or of all: a target of add_target or the URL of a "
        "queue; or off (default: off, back to the source queue)",
    )  # fmt: skip


def destination(text: str) -> Target:
    """Return a known target, or a queue that may not be stored yet.

    Raises:
        CommandError: there is no such target.
        TargetIsUnclear: several targets match, or the text names none.
    """
    try:
        return examine.known(text) or examine.queue(text)
    except QueueIsOutOfReach as error:
        raise CommandError(
            f"{text} is not a known target, and SQS does not answer for it as a queue: {error} To add an endpoint, a "
            f"function, a topic or a bus: manage.py add_target {text} --confirm"
        ) from error
