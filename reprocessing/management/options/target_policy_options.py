"""Add the options that set a target's connection, outcome and rate, and read their values."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import InvalidAnswers, QueueUnreachable
from reprocessing.domain.message import arn
from reprocessing.domain.targets import http_responses as meanings
from reprocessing.domain.targets.webhook_headers import is_media_type
from reprocessing.management.arguments import OFF, matching, number, or_off, whole_number
from reprocessing.models import Target
from reprocessing.models.target import MAX_RATE, MAX_SECONDS, MAX_TIMEOUT, MIN_RATE, Advance, Proof
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.targets import targets

#: Fields of a target about its outcome, rate, ramp-up and circuit breaker.
RATE_FIELDS = ("proof", "advance", "rate", "burst", "window", *targets.BREAKER_FIELDS)
#: Fields of a target about its connection.
CONNECTION_FIELDS = ("timeout", "answers", "content_type", "secret", "role_arn", "region", "confirmed_fanout")
#: The value that "off" stores in a field. For fields that are not here, "off" stores None.
OFF_VALUES = {
    "parking_url": "", "ramp_from": 1.0, "message_type": "", "tenant": "", "answers": "", "content_type": "",
    "secret": "", "role_arn": "",
}  # fmt: skip

_SHORTEST_ANSWER = 0.1  #: seconds, the min of --timeout


content_type = matching(is_media_type, "a content type", "application/json")
read_role_arn = matching(arn.is_role, "the ARN of a role", "arn:aws:iam::111122223333:role/redrive")
read_region = matching(arn.is_region, "a region", "eu-west-1")


def status_codes(text: str) -> str:
    """Read the value of --answers, which says what HTTP status codes mean, such as `409=success 4xx=retry`."""
    try:
        return str(meanings.parse_answers(text))
    except InvalidAnswers as error:
        raise ArgumentTypeError(str(error)) from error


def given_fields(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return, by field name, the values of those fields whose options were given on the command line."""
    given = {name: options[name] for name in names if options[name] is not None}
    return {name: OFF_VALUES.get(name) if value == OFF else value for name, value in given.items()}


def add_outcome(parser: CommandParser) -> None:
    """Add the options that say when a message counts as delivered, and at which rate messages are sent."""
    parser.add_argument(
        "--outcome", dest="proof", choices=Proof.values,
        help="what proves delivery. accepted: the target accepted the message; absence: the message did not come back "
        "to the DLQ; acknowledged: the consumer reported success (default: absence if the target has a "
        "registered DLQ, else accepted)",
    )  # fmt: skip
    parser.add_argument(
        "--advance", choices=Advance.values,
        help="when to send a key's next message. accepted: when the target has accepted the message before; settled: "
        "when the outcome of the message before is known (default: settled for standard queues with a key, else "
        "accepted)",
    )  # fmt: skip
    parser.add_argument(
        "--window", type=number(0, MAX_SECONDS, above=True), metavar="SECONDS",
        help="with outcome acknowledged: seconds to wait for the consumer's report; with outcome absence, if the "
        "target queue is never empty: seconds after which a message that is not back in the DLQ counts as delivered "
        "(default: the target queue's visibility timeout x (maxReceiveCount + 1))",
    )  # fmt: skip
    add_rate(parser, "10")


def add_rate(parser: CommandParser, default: str) -> None:
    """Add --rate and --burst. `default` is the default rate, which the help text shows."""
    parser.add_argument(
        "--rate", type=or_off(number(MIN_RATE, MAX_RATE)), metavar="R",
        help=f"rate limit in messages/s, for all workers together, or off for no limit (default: {default})",
    )  # fmt: skip
    parser.add_argument(
        "--burst", type=or_off(number(1, MAX_RATE)), metavar="N",
        help="max messages sent at once after a pause, or off for as many as the rate limit allows in one second "
        "(default: off)",
    )  # fmt: skip


def add_connection(parser: CommandParser) -> None:
    """Add the options that say how the service connects to a target."""
    parser.add_argument(
        "--timeout", type=number(_SHORTEST_ANSWER, MAX_TIMEOUT), metavar="SECONDS",
        help="seconds within which an HTTP endpoint or a function must answer (default: 30, functions: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--answers", type=or_off(status_codes), metavar="WORDS",
        help="what HTTP statuses mean, such as '409=success 4xx=retry'. success: delivered; retry: a failed attempt, "
        "sent again after the backoff; wait: sent again, and the attempt does not count; poison: parked at once. Or "
        "off for the defaults",
    )  # fmt: skip
    parser.add_argument(
        "--content-type", type=or_off(content_type), metavar="TYPE",
        help="Content-Type of requests to an HTTP endpoint, or off to choose it by the message (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--secret",
        metavar="NAME",
        help="name of the secret, in REDRIVE_SECRETS, with which requests to an HTTP "
        "endpoint are signed, or off for unsigned requests",
    )
    parser.add_argument(
        "--region", type=read_region, metavar="REGION", help="AWS region of the target (default: from its ARN)"
    )
    parser.add_argument(
        "--refire", dest="confirmed_fanout", type=whole_number(0), metavar="N",
        help="confirm that N other subscribers of the SNS topic or EventBridge bus will receive each message again; "
        "refused if there are more than N",
    )  # fmt: skip
    add_role(parser, "the target")


def add_role(parser: CommandParser, of: str) -> None:
    """Add --role, an IAM role. `of` says in the help text what the role is for, such as "the target"."""
    parser.add_argument(
        "--role", dest="role_arn", type=or_off(read_role_arn), metavar="ARN",
        help=f"IAM role to assume for {of}, or off for the service's own role (default: off)",
    )  # fmt: skip


def add_to(parser: CommandParser) -> None:
    """Add --to, which sets where messages are redriven to."""
    parser.add_argument(
        "--to", type=str, metavar="TARGET",
        help="where to send messages: a target that add_target added, the URL of a queue, or off for the source queue "
        "(default: off). With --source, this applies only to messages of that source",
    )  # fmt: skip


def find_destination(text: str) -> Target:
    """Return the target that `text` names: a stored target, or a new, unsaved target for the URL or ARN of a queue.

    Raises:
        CommandError: no stored target matches, and SQS could not be asked for a queue of this URL or ARN.
        InvalidTarget: several targets match, or the text cannot name a target.
    """
    try:
        return examine.find_target(text) or examine.queue_target(text)
    except QueueUnreachable as error:
        raise CommandError(
            f"{text} is not a known target, and SQS does not answer for it as a queue: {error} To add an endpoint, a "
            f"function, a topic or a bus: manage.py add_target {text} --confirm"
        ) from error
