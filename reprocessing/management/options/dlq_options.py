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
from reprocessing.store.dlqs import registration


def add_queues(parser: CommandParser) -> None:
    """Add the options about the DLQ's queue, sources, teams, payloads, and when messages are deleted from SQS."""
    parser.add_argument("--url", type=not_empty, metavar="URL", help="URL of the DLQ")
    parser.add_argument(
        "--source", action="append", metavar="WHAT",
        help="source that SQS does not list: URL of a queue, or ARN of a Lambda function, SNS subscription or "
        "EventBridge target; repeatable. If given once, it is also the source of messages that do not name a source",
    )  # fmt: skip
    parser.add_argument(
        "--team", action="append", type=not_empty, metavar="NAME",
        help="Django group whose members see the DLQ in the admin; repeatable, and replaces the teams before; off: no "
        "team, so that only people with the permission view_all_dlqs see the DLQ (default: off)",
    )  # fmt: skip
    add_role(parser, "the DLQ")
    parser.add_argument(
        "--mode",
        choices=Mode.values,
        help="observe: receive and send nothing; manual: redrive when a person asks; automatic: redrive all the time "
        "(default: manual)",
    )
    parser.add_argument(
        "--delete-when", choices=DeleteWhen.values,
        help="delete a message from the DLQ when it is finished (terminal), or as soon as it is captured (default: "
        "terminal, FIFO: captured)",
    )  # fmt: skip
    parser.add_argument(
        "--policy", type=or_off(slug), metavar="NAME",
        help="policy of a configuration file, from which the DLQ inherits settings; other options given here override "
        "the policy. Given again, removes the DLQ's own settings; off: ends the inheritance, and keeps the values",
    )  # fmt: skip
    parser.add_argument(
        "--held-copies-limit", type=whole_number(0, MAX_HELD_COPIES), metavar="N",
        help="max captured messages that stay in the DLQ (default: 20000)",
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
        help="field by whose value people find messages, such as order_id=body:order.id; repeatable, 10 at most, and "
        "replaces the fields before. Everybody who sees the messages finds them by the value, unless it is masked; "
        "off: none (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-bodies", type=or_off(whole_number(0, MAX_DAYS)), metavar="DAYS",
        help="delete the body of a message DAYS days after it is delivered, duplicate or discarded; its history stays; "
        "off: keep bodies as long as the history (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--parking-url",
        type=or_off(not_empty),
        metavar="URL",
        help="URL of an SQS queue that gets a copy of parked messages, or off for none",
    )


def add_keys(parser: CommandParser) -> None:
    """Add the options that say where a message has its keys and sequence, and what to do if a key must wait."""
    shapes = "system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none"
    parser.add_argument(
        "--ordering-key",
        type=selector,
        metavar="S",
        help=f"where the ordering key is: {shapes} (default: none, FIFO: system:MessageGroupId)",
    )
    parser.add_argument(
        "--sequence", type=selector, metavar="S",
        help="where the value is that orders the messages of a key (default: system:SentTimestamp, FIFO: "
        "system:SequenceNumber)",
    )  # fmt: skip
    parser.add_argument(
        "--idempotency-key", type=selector, metavar="S", help="where the idempotency key is (default: message-id)"
    )
    parser.add_argument(
        "--missing-key", choices=MissingKey.values,
        help="what to do with a message that has no ordering key: park it, or send it in no order (lane) "
        "(default: park)",
    )  # fmt: skip
    parser.add_argument(
        "--message-type",
        type=or_off(shared_or_none),
        metavar="S",
        help="where the type of a message is, for rules and failure groups; off: rules have no type, failure groups "
        "find it by usual names; none: failure groups show no types (default: off)",
    )
    parser.add_argument(
        "--tenant",
        type=or_off(shared),
        metavar="S",
        help="where the tenant of a message is, for rules that compare it, or off (default: off)",
    )
    parser.add_argument(
        "--stale", choices=StalePolicy.values,
        help="what to do with a message when a later message of its ordering key was delivered already (default: park)",
    )  # fmt: skip
    parser.add_argument(
        "--when-parked", choices=ParkedHead.values,
        help="when a message is parked: continue with the key's next message (aside), or hold the key (default: aside)",
    )  # fmt: skip


def add_attempts(parser: CommandParser) -> None:
    """Add the options that limit attempts and receives, and set the delays before attempts."""
    parser.add_argument("--max-attempts", type=whole_number(1), metavar="N", help="attempts per message (default: 3)")
    add_backoff(parser, base=number(0, MAX_SECONDS))
    parser.add_argument(
        "--new-key-delay", type=or_off(number(0, MAX_SECONDS)), metavar="SECONDS",
        help="seconds to wait before the first message of a new ordering key is sent; off: as long as the source "
        "queue's visibility timeout (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--receive-limit", type=or_off(whole_number(1)), metavar="N",
        help="park messages that this service received from the DLQ more than N times, or off for no limit "
        "(default: off)",
    )  # fmt: skip


def add_schedule(parser: CommandParser) -> None:
    """Add the options of the schedule by which beat polls the DLQ in mode automatic."""
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument(
        "--every", dest="interval", type=whole_number(1, MAX_SECONDS), metavar="SECONDS",
        help="poll interval in mode automatic (default: 60)",
    )  # fmt: skip
    schedule.add_argument("--crontab", type=crontab, metavar="FIELDS", help='poll at "minute hour day month weekday"')
    parser.add_argument(
        "--at-once",
        action=BooleanOptionalAction,
        help="poll again at once after a poll that found messages (default: no)",
    )


def selector(text: str) -> str:
    """Read a selector, which says where a value is in a message, such as `attribute:customer`."""
    try:
        return str(Selector.parse(text))
    except InvalidSelector as error:
        raise ArgumentTypeError(str(error)) from error


def shared(text: str) -> str:
    """Read a selector for rules. Refuse `message-id`, `content-hash` and `none`: rules compare values that recur."""
    if Selector.parse(found := selector(text)).source in (
        SelectorSource.NONE,
        SelectorSource.CONTENT_HASH,
        SelectorSource.MESSAGE_ID,
    ):
        raise ArgumentTypeError(f"{text} is different in every message. Use an attribute or a body field, or off")
    return found


def shared_or_none(text: str) -> str:
    """Read a selector as `shared` does, or none."""
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
        schedule = registration.crontab_schedule(text)
        schedule.clean_fields()
    except (ValidationError, ValueError) as error:
        raise ArgumentTypeError(f'{text!r} is not a schedule. Example: "*/5 * * * *"') from error
    try:
        _ = schedule.schedule
    except ValueError as error:  # Celery refuses a day that none of the given months has
        raise ArgumentTypeError(f"{text!r} has no next time, because no such month has that day") from error
    return " ".join(text.split())
