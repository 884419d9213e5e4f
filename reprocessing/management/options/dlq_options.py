"""Add the options that set a DLQ's queue, keys, attempts and schedule, and read their values."""

from __future__ import annotations

from argparse import ArgumentTypeError, BooleanOptionalAction

from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message.identity import Selector, SelectorSource
from reprocessing.domain.payloads.mask_rules import mask_problem
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.search.search_fields import SearchField
from reprocessing.management.arguments import not_empty, number, or_off, slug, whole_number
from reprocessing.management.options.target_policy_options import add_role
from reprocessing.management.shared.rule_command import add_backoff
from reprocessing.models.dlq import MAX_DAYS, MAX_HELD_COPIES, DeleteWhen, MissingKey, Mode, ParkedHead, StalePolicy
from reprocessing.models.target import MAX_SECONDS
from reprocessing.store.dlqs import dlq_proposal


def add_queues(parser: CommandParser) -> None:
    """Add the options about a DLQ's URL, sources, teams, mode and payloads, and when messages are deleted from SQS."""
    parser.add_argument("--url", type=not_empty, metavar="URL", help="URL of the DLQ")
    parser.add_argument(
        "--source", action="append", metavar="WHAT",
        help="source of the DLQ's messages, if SQS does not list it as a source queue of the DLQ: URL of a queue, or "
        "ARN of a Lambda function, SNS subscription or EventBridge target; repeatable. If given once, messages that "
        "do not name their source count as messages of this source",
    )  # fmt: skip
    parser.add_argument(
        "--team", action="append", type=not_empty, metavar="NAME",
        help="Django group (not the group of a role) whose members see the DLQ in the admin; repeatable; the given "
        "teams replace the DLQ's earlier teams; off: no team, so that only people with the permission "
        "view_all_dlqs see the DLQ (default: off)",
    )  # fmt: skip
    add_role(parser, "the DLQ")
    parser.add_argument(
        "--mode",
        choices=Mode.values,
        help="observe: receive and send no messages; manual: redrive only when a person starts a run; automatic: poll "
        "the DLQ, and redrive all messages (default: manual)",
    )
    parser.add_argument(
        "--delete-when", choices=DeleteWhen.values,
        help="when to delete a message from the DLQ. terminal: when the message is delivered, parked, duplicate or "
        "discarded; captured: as soon as the message is captured (default: terminal, FIFO DLQs: captured)",
    )  # fmt: skip
    parser.add_argument(
        "--policy", type=or_off(slug), metavar="NAME",
        help="name of a policy, which is a named set of DLQ settings in a configuration file: the DLQ gets these "
        "settings, except those for which you give other options; off: no policy, and the DLQ keeps its settings",
    )  # fmt: skip
    parser.add_argument(
        "--held-copies-limit", type=whole_number(0, MAX_HELD_COPIES), metavar="N",
        help="max captured messages that stay in the DLQ; above the limit, messages are deleted from the DLQ when "
        "they are captured (default: 20000)",
    )  # fmt: skip
    parser.add_argument(
        "--public-field", action="append", dest="public_fields", type=expression, metavar="JMESPATH",
        help="body field that people see without the permission view_payload, such as order.id; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--masked-field", action="append", dest="masked_fields", type=mask_rule, metavar="NAME_OR_JMESPATH",
        help="field whose values are masked unless a person may reveal them: a name such as email, anywhere in the "
        "message, or a JMESPath expression of the body such as cards[*].number; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--search-field", action="append", dest="search_fields", type=or_off(search_field), metavar="NAME=S",
        help="field by whose value people can search messages, such as order_id=body:order.id; repeatable, at most 10; "
        "the given fields replace all earlier fields. Everybody who sees the messages can search by the value, unless "
        "the value is masked; off: no search fields (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-bodies", type=or_off(whole_number(0, MAX_DAYS)), metavar="DAYS",
        help="delete a message's body DAYS days after the message is delivered, duplicate or discarded; the record of "
        "its attempts stays; off: keep the body as long as this record (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--parking-url",
        type=or_off(not_empty),
        metavar="URL",
        help="URL of the parking queue, an SQS queue that gets a copy of each parked message, or off for no parking "
        "queue (default: off)",
    )


def add_keys(parser: CommandParser) -> None:
    """Add the options that say where the keys of a message are, and what to do if a key is missing or out of order."""
    shapes = "system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none"
    parser.add_argument(
        "--ordering-key",
        type=selector,
        metavar="S",
        help=f"where the ordering key is: {shapes} (default: none, FIFO: system:MessageGroupId)",
    )
    parser.add_argument(
        "--sequence", type=selector, metavar="S",
        help="where to find the sequence, the value that orders the messages of a key; written like "
        "--ordering-key, such as body:version (default: system:SentTimestamp, FIFO: system:SequenceNumber)",
    )  # fmt: skip
    parser.add_argument(
        "--idempotency-key",
        type=selector,
        metavar="S",
        help="where in a message the idempotency key is; written like --ordering-key, such as body:order.id (default: "
        "message-id)",
    )
    parser.add_argument(
        "--missing-key", choices=MissingKey.values,
        help="what to do with a message that has no ordering key. park: park the message; lane: send the message in a "
        "key queue of its own, so in no order with other messages (default: park)",
    )  # fmt: skip
    parser.add_argument(
        "--message-type",
        type=or_off(shared_or_none),
        metavar="S",
        help="where in a message its type is, such as attribute:eventType, for rules and failure groups; off: rules "
        "see no type, and failure groups take the type from fields with usual names, such as eventType; none: neither "
        "rules nor failure groups see a type (default: off)",
    )
    parser.add_argument(
        "--tenant",
        type=or_off(shared),
        metavar="S",
        help="where in a message its tenant (the customer) is, such as attribute:tenant, for rules with the field "
        "tenant; off: rules see no tenant (default: off)",
    )
    parser.add_argument(
        "--stale", choices=StalePolicy.values,
        help="what to do with a message if a later message of its ordering key was delivered already. park: park the "
        "message; deliver: send the message although it is late (default: park)",
    )  # fmt: skip
    parser.add_argument(
        "--when-parked", choices=ParkedHead.values,
        help="what to do when a message is parked. aside: send the key's next message; hold: send no message of the "
        "key until a person decides about the parked message (default: aside)",
    )  # fmt: skip


def add_attempts(parser: CommandParser) -> None:
    """Add the options that limit attempts and receives, and set the delays before attempts."""
    parser.add_argument(
        "--max-attempts",
        type=whole_number(1),
        metavar="N",
        help="max attempts to deliver a message; then the message is parked (default: 3)",
    )
    add_backoff(parser, base=number(0, MAX_SECONDS))
    parser.add_argument(
        "--new-key-delay", type=or_off(number(0, MAX_SECONDS)), metavar="SECONDS",
        help="seconds to wait before the first message of a new ordering key is sent, because an earlier message of "
        "the key may still fail; off: the source queue's visibility timeout (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--receive-limit", type=or_off(whole_number(1)), metavar="N",
        help="park a message that this service has received from the DLQ more than N times, or off for no limit "
        "(default: off)",
    )  # fmt: skip


def add_schedule(parser: CommandParser) -> None:
    """Add the options of the schedule by which beat polls the DLQ in mode automatic."""
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument(
        "--every", dest="interval", type=whole_number(1, MAX_SECONDS), metavar="SECONDS",
        help="in mode automatic: seconds between two polls of the DLQ (default: 60)",
    )  # fmt: skip
    schedule.add_argument(
        "--crontab",
        type=crontab,
        metavar="FIELDS",
        help="in mode automatic: poll the DLQ at these "
        "times (UTC), written as in a crontab: "
        '"minute hour day month weekday"',
    )
    parser.add_argument(
        "--at-once",
        action=BooleanOptionalAction,
        help="in mode automatic: poll again at once after a poll that found messages (default: no)",
    )


def selector(text: str) -> str:
    """Read a selector, which says where a value is in a message, such as `attribute:customer`."""
    try:
        return str(Selector.parse(text))
    except InvalidSelector as error:
        raise ArgumentTypeError(str(error)) from error


def shared(text: str) -> str:
    """Read a selector of a value that can be equal in several messages. Refuse `message-id`, `content-hash`, `none`."""
    if Selector.parse(found := selector(text)).source in (
        SelectorSource.NONE,
        SelectorSource.CONTENT_HASH,
        SelectorSource.MESSAGE_ID,
    ):
        raise ArgumentTypeError(f"{text} is different in every message. Use an attribute or a body field, or off")
    return found


def shared_or_none(text: str) -> str:
    """Read a selector of a value that can be equal in several messages, or the text `none`."""
    return text if text == SelectorSource.NONE else shared(text)


def expression(text: str) -> str:
    """Read a JMESPath expression, such as `order.id`. Refuse an expression that is not valid."""
    if problem := jmespath_query.problem(text, as_in="order.id"):
        raise ArgumentTypeError(problem)
    return text


def mask_rule(text: str) -> str:
    """Read a masking rule: the name of a field, or a JMESPath expression of the body. Refuse any other text."""
    if problem := mask_problem(text):
        raise ArgumentTypeError(problem)
    return text


def search_field(text: str) -> str:
    """Read a search field: its name, and where its value is, such as `order_id=body:order.id`."""
    try:
        return str(SearchField.parse(text))
    except InvalidSelector as error:
        raise ArgumentTypeError(str(error)) from error


def crontab(text: str) -> str:
    """Read a schedule: the five fields of a crontab. Refuse a schedule that never occurs, such as 30 February."""
    try:
        schedule = dlq_proposal.crontab_schedule(text)
        schedule.clean_fields()
    except (ValidationError, ValueError) as error:
        raise ArgumentTypeError(f'{text!r} is not a schedule. Example: "*/5 * * * *"') from error
    try:
        _ = schedule.schedule
    except ValueError as error:  # Celery refuses a day that none of the given months has
        raise ArgumentTypeError(f"{text!r} never occurs, because none of its months has that day") from error
    return " ".join(text.split())
