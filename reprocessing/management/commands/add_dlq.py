"""`manage.py add_dlq`."""

from __future__ import annotations

from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message.identity import Selector, SelectorSource
from reprocessing.domain.payloads.mask_rules import mask_problem
from reprocessing.domain.routing import jmespath_query
from reprocessing.management.arguments import OFF, add_change_options, not_empty, number, or_off, slug, whole_number
from reprocessing.management.console import Console
from reprocessing.management.options import target_kind_options
from reprocessing.management.options.safety_options import add_safety
from reprocessing.management.options.target_policy_options import (
    RATE_FIELDS,
    add_outcome,
    add_role,
    add_to,
    find_destination,
    given_fields,
)
from reprocessing.management.output import findings_output
from reprocessing.management.output.findings_output import outcome
from reprocessing.management.shared.rule_command import add_backoff
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import MAX_HELD_COPIES, DeleteWhen, MissingKey, Mode, ParkedHead, StalePolicy
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import automatic_redrive, registration
from reprocessing.store.dlqs.registration import Registered

#: Columns of a DLQ that command-line options set.
_DLQ = (
    "mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "max_attempts", "backoff_base",
    "backoff_cap", "backoff_jitter", "new_key_delay", "when_parked", "stale", "receive_limit", "parking_url", "at_once",
    "interval", "crontab", "message_type", "tenant", "waves", "wave_success", "give_up_after", "role_arn", "policy",
    "held_copies_limit", "public_fields", "masked_fields",
)  # fmt: skip


class Command(Console):
    """Register a DLQ, or change its settings.

    Examines the DLQ and its source queues, and shows problems. Receives and sends no messages. For a registered
    DLQ, only the options that are given change.

    Examples:
        add_dlq orders --url https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dlq
        add_dlq orders --ordering-key attribute:customer --rate 20 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="your name for the DLQ: letters, digits, - _")
        _add_queues(parser)
        _add_keys(parser)
        _add_attempts(parser)
        add_outcome(parser)
        add_to(parser)
        add_safety(parser)
        target_kind_options.add_celery_options(parser)
        _add_schedule(parser)
        add_change_options(parser, reason="add_dlq")

    def answer(self, options: dict[str, Any]) -> None:
        wanted = asked(options)
        if wanted.url is None and not DeadLetterQueue.objects.filter(name=wanted.name).exists():
            raise CommandError(f"{wanted.name} has not been added yet, so its URL is needed. Add: --url URL")
        found = examine.dlq(wanted, conf.current())
        done = Registered(new=found.observed.row is None, differences=registration.differences(found.proposal))
        acted = options["confirm"] and not found.is_refused
        if acted:
            done = registration.register(found.proposal, by=options["by"], reason=options["reason"])
            row, depth = DeadLetterQueue.objects.get(name=wanted.name), found.observed.depth
            capture_lease.note_depth(row.pk, visible=depth.visible, in_flight=depth.in_flight)
        if options["json"]:
            self.report(_in_json(found, done, acted=acted))
        else:
            self.say("\n".join(screen(found, done)))
        if found.is_refused:
            raise CommandError(f"{wanted.name}: nothing was saved. Fix what is REFUSED above, then run this again.")
        if not options["json"]:
            self.say(last_line(wanted.name, done, acted=acted))


def asked(options: dict[str, Any]) -> Wanted:
    """Return the settings of the DLQ that were given on the command line."""
    return Wanted(
        name=options["name"],
        url=options["url"],
        sources=tuple(options["source"] or ()),
        to=find_destination(options["to"]) if options["to"] not in {None, OFF} else None,
        takes_back=options["to"] == OFF,
        teams=_teams(options["team"]),
        dlq=given_fields(options, _DLQ),
        target=given_fields(options, (*RATE_FIELDS, *target_kind_options.CELERY_FIELDS)),
    )


def _add_queues(parser: CommandParser) -> None:
    parser.add_argument("--url", type=not_empty, metavar="URL", help="URL of the DLQ")
    parser.add_argument(
        "--source", action="append", metavar="WHAT",
        help="source that SQS does not list: URL of a queue, or ARN of a Lambda function, SNS subscription or "
        "EventBridge target; repeatable. If it is given once, it is the source of messages naming none",
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
        help="policy of a configuration file whose settings the DLQ has; its other options here override the policy. "
        "Given again, it removes the DLQ's own settings; off ends the inheritance and keeps the values",
    )  # fmt: skip
    parser.add_argument(
        "--held-copies-limit", type=whole_number(0, MAX_HELD_COPIES), metavar="N",
        help="max captured messages that stay in the DLQ, in flight (default: 20000)",
    )  # fmt: skip
    parser.add_argument(
        "--public-field", action="append", dest="public_fields", type=expression, metavar="JMESPATH",
        help="body field that people see without the permission view_payload, such as order.id; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--masked-field", action="append", dest="masked_fields", type=mask_rule, metavar="NAME_OR_JMESPATH",
        help="field whose values are masked for people who may see payloads but not reveal them: a name such as email, "
        "anywhere in the message, or a JMESPath expression of the body such as cards[*].number; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--parking-url",
        type=or_off(not_empty),
        metavar="URL",
        help="URL of an SQS queue that gets a copy of parked messages, or off for none",
    )


def _teams(named: list[str] | None) -> tuple[str, ...] | None:
    if named is None:
        return None
    if OFF in named and len(named) > 1:
        raise CommandError(
            f"--team {OFF} means no team, so it stands alone. Type --team NAME for each team, or one off."
        )
    return () if named == [OFF] else tuple(sorted(set(named)))


def _add_keys(parser: CommandParser) -> None:
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
    for option, field in (("--message-type", "type"), ("--tenant", "tenant")):
        parser.add_argument(
            option,
            type=or_off(shared),
            metavar="S",
            help=f"where the {field} of a message is, for rules that compare it, or off (default: off)",
        )
    parser.add_argument(
        "--stale", choices=StalePolicy.values,
        help="what to do with a message when a later message of its ordering key was delivered already (default: park)",
    )  # fmt: skip
    parser.add_argument(
        "--when-parked", choices=ParkedHead.values,
        help="when a message is parked: continue with the key's next message (aside), or hold the key (default: aside)",
    )  # fmt: skip


def _add_attempts(parser: CommandParser) -> None:
    parser.add_argument("--max-attempts", type=whole_number(1), metavar="N", help="attempts per message (default: 3)")
    add_backoff(parser, base=number(0, MAX_SECONDS))
    parser.add_argument(
        "--new-key-delay", type=or_off(number(0, MAX_SECONDS)), metavar="SECONDS",
        help="wait before the first message of a new ordering key is sent, or off to wait for the source queue's "
        "visibility timeout (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--receive-limit", type=or_off(whole_number(1)), metavar="N",
        help="park messages that this service received from the DLQ more than N times, or off for no limit "
        "(default: off)",
    )  # fmt: skip


def _add_schedule(parser: CommandParser) -> None:
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
    """Read a selector: where a value is in a message, such as `attribute:customer`."""
    try:
        return str(Selector.parse(text))
    except InvalidSelector as error:
        raise ArgumentTypeError(str(error)) from error


def shared(text: str) -> str:
    """Read a selector. Refuse a selector whose value differs in every message."""
    if Selector.parse(found := selector(text)).source in (
        SelectorSource.NONE,
        SelectorSource.CONTENT_HASH,
        SelectorSource.MESSAGE_ID,
    ):
        raise ArgumentTypeError(f"{text} is different in every message. Use an attribute or a body field, or off")
    return found


def expression(text: str) -> str:
    """Read a JMESPath expression."""
    if problem := jmespath_query.problem(text, as_in="order.id"):
        raise ArgumentTypeError(problem)
    return text


def mask_rule(text: str) -> str:
    """Read a masking rule."""
    if problem := mask_problem(text):
        raise ArgumentTypeError(problem)
    return text


def crontab(text: str) -> str:
    """Read a schedule: the five fields of a crontab."""
    try:
        schedule = registration.crontab_schedule(text)
        schedule.clean_fields()
    except (ValidationError, ValueError) as error:
        raise ArgumentTypeError(f'{text!r} is not a schedule. Example: "*/5 * * * *"') from error
    try:
        _ = schedule.schedule
    except ValueError as error:  # Celery knows days that no month has
        raise ArgumentTypeError(f"{text!r} has no next time, because no such month has that day") from error
    return " ".join(text.split())


def screen(found: Examination, done: Registered) -> Iterable[str]:
    """Yield lines: the DLQ, its source queues, the changes and the problems."""
    depth = found.observed.depth
    yield f"{found.proposal.name}: {found.observed.dlq.facts.arn}"
    yield f"  about {depth.visible:,} messages visible, {depth.in_flight:,} in flight"
    for seen in found.observed.sources.values():
        policy = seen.facts.redrive
        visibility = f"visibility timeout {seen.facts.visibility.total_seconds():g} s"
        receives = f"maxReceiveCount {policy.max_receives}, {visibility}" if policy else "none"
        yield f"  source queue {seen.address.name} (redrive policy: {receives})"
    yield ""
    yield from findings_output.lines(done.differences, found.findings, new=done.new)


def last_line(name: str, done: Registered, *, acted: bool) -> str:
    """Return what was done with the DLQ, and the next step."""
    told = outcome(name, new=done.new, changed=bool(done.differences), acted=acted, verb="added")
    if not acted or not any(one.field == "mode" for one in done.differences):
        return told
    nothing = "Nothing is redriven yet" if done.new else "Messages are no longer redriven automatically"
    hints = f"manage.py peek_dlq {name} --confirm shows messages; manage.py drain_dlq {name} shows a plan."
    return f"{told} {automatic_redrive.describe_redrive(name, by_hand=f'{nothing}. {hints}')}"


def _in_json(found: Examination, done: Registered, *, acted: bool) -> dict[str, Any]:
    return {
        "dlq": found.proposal.name,
        "dry_run": not acted,
        "refused": found.is_refused,
        "new": done.new,
        "arn": found.observed.dlq.facts.arn,
        "depth": {"visible": found.observed.depth.visible, "in_flight": found.observed.depth.in_flight},
        "sources": list(found.observed.sources),
        **findings_output.in_json(done.differences, found.findings),
    }
