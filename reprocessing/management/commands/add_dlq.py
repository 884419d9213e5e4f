"""`manage.py add_dlq`: watch a dead-letter queue, or change how one is watched. Adding one never redrives it."""

from __future__ import annotations

from argparse import ArgumentTypeError, BooleanOptionalAction
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.validators import validate_slug

from reprocessing import conf
from reprocessing.domain.errors import SelectorIsUnclear
from reprocessing.domain.message.identity import Selector, Source
from reprocessing.management.console import Console, add_confirm, add_json, add_person, number, whole
from reprocessing.management.options import target_kind_options
from reprocessing.management.options.safety_options import add_brakes
from reprocessing.management.options.target_policy_options import PACE, add_outcome, add_role, add_to, destination, said
from reprocessing.management.output import findings_output
from reprocessing.management.output.rule_output import OFF
from reprocessing.management.shared.rule_command import or_off
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import DeleteWhen, Jitter, MissingKey, Mode, ParkedHead, StalePolicy
from reprocessing.models.target import FORTNIGHT
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import automatic_redrive, registration
from reprocessing.store.dlqs.registration import Registered

#: Options by the names of the fields they fill.
_DLQ = (
    "mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "max_attempts", "backoff_base",
    "backoff_cap", "backoff_jitter", "quiet_for", "parked_head", "stale", "receive_ceiling", "parking_url", "at_once",
    "interval", "crontab", "message_type", "tenant", "waves", "wave_success", "give_up_after", "role_arn",
)  # fmt: skip
_LONGEST_NAME = 100


class Command(Console):
    """Examines the queues, says what it would remember and what is wrong, and with --confirm remembers it."""

    help = (
        "Watches a dead-letter queue, or changes how one is watched: of one that was added before, only what is given "
        "is changed. Looks at the queues and explains what is wrong with them. Neither receives nor sends anything."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=name, metavar="NAME", help="a name of your own for it: letters, digits, - _")
        _add_queues(parser)
        _add_keys(parser)
        _add_attempts(parser)
        add_outcome(parser)
        add_to(parser)
        add_brakes(parser)
        target_kind_options.add_target(parser)
        _add_schedule(parser)
        add_person(parser, reason="add_dlq")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        wanted = asked(options)
        if wanted.url is None and not DeadLetterQueue.objects.filter(name=wanted.name).exists():
            raise CommandError(f"{wanted.name} has not been added yet. Say where it is: --url URL.")
        found = examine.dlq(wanted, conf.current())
        done = Registered(new=found.sight.row is None, differences=registration.differences(found.proposal))
        acted = options["confirm"] and not found.is_refused
        if acted:
            done = registration.register(found.proposal, by=options["by"], reason=options["reason"])
            self.note_depth(found)
        if options["json"]:
            self.report(_in_json(found, done, acted=acted))
        else:
            self.say("\n".join(screen(found, done)))
        if found.is_refused:
            raise CommandError(f"{wanted.name}: nothing was written. Cure what is refused above, and run this again.")
        if not options["json"]:
            self.say(last_line(wanted.name, done, acted=acted))

    def note_depth(self, found: Examination) -> None:
        """Remember what SQS has just said."""
        row = DeadLetterQueue.objects.get(name=found.proposal.name)
        capture_lease.note_depth(row.pk, visible=found.sight.depth.visible, in_flight=found.sight.depth.in_flight)


def asked(options: dict[str, Any]) -> Wanted:
    """What was said on the command line; what was not is in no mapping."""
    return Wanted(
        name=options["name"],
        url=options["url"],
        origins=tuple(options["origin"] or ()),
        to=destination(options["to"]) if options["to"] not in {None, OFF} else None,
        takes_back=options["to"] == OFF,
        dlq=said(options, _DLQ),
        target=said(options, (*PACE, *target_kind_options.FIELDS)),
    )


def _add_queues(parser: CommandParser) -> None:
    parser.add_argument("--url", type=given, metavar="URL", help="the dlq's URL, as SQS shows it")
    parser.add_argument(
        "--origin", action="append", metavar="WHAT",
        help="the URL of a queue whose messages die into it, where SQS does not tell; or the ARN of what else failed "
        "to take its letters: a Lambda function, an SNS subscription, a target of EventBridge; letters that do not say "
        "where they died go back to it; may be given several times",
    )  # fmt: skip
    add_role(parser, "the dlq")
    parser.add_argument("--mode", choices=Mode.values, help="default: manual; observe receives nothing")
    parser.add_argument(
        "--delete-when", choices=DeleteWhen.values,
        help="when copies are deleted from the dlq; default: terminal, on FIFO captured",
    )  # fmt: skip
    parser.add_argument(
        "--parking-url", type=or_off(given), metavar="URL", help='an SQS queue that is told of parked letters; or "off"'
    )


def _add_keys(parser: CommandParser) -> None:
    shapes = "system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none"
    parser.add_argument(
        "--ordering-key", type=selector, metavar="S", help=f"{shapes}; default: none, on FIFO system:MessageGroupId"
    )
    parser.add_argument(
        "--sequence", type=selector, metavar="S", help="default: system:SentTimestamp, on FIFO system:SequenceNumber"
    )
    parser.add_argument("--idempotency-key", type=selector, metavar="S", help="default: message-id")
    parser.add_argument(
        "--missing-key", choices=MissingKey.values, help="what becomes of a letter without ordering key; default: park"
    )
    for one, of in (("--message-type", "type"), ("--tenant", "tenant")):
        parser.add_argument(one, type=or_off(shared), metavar="S", help=f'what rules know as {of}; default: "off"')
    parser.add_argument("--stale", choices=StalePolicy.values, help="of one that turns up too late; default: park")
    parser.add_argument("--parked-head", choices=ParkedHead.values, help="what one does to its lane; default: aside")


def _add_attempts(parser: CommandParser) -> None:
    parser.add_argument("--max-attempts", type=whole(1), metavar="N", help="default: 3")
    parser.add_argument("--backoff-base", type=number(0, FORTNIGHT), metavar="SECONDS", help="default: 60")
    parser.add_argument("--backoff-cap", type=number(0, FORTNIGHT), metavar="SECONDS", help="default: 21600")
    parser.add_argument("--jitter", dest="backoff_jitter", choices=Jitter.values, help="default: full")
    parser.add_argument(
        "--quiet-for", type=or_off(number(0, FORTNIGHT)), metavar="SECONDS",
        help='how long a fresh lane rests; default ("off"): the visibility timeout of its origin',
    )  # fmt: skip
    parser.add_argument(
        "--receive-ceiling", type=or_off(whole(1)), metavar="N",
        help='park letters received more often; default: "off"',
    )  # fmt: skip


def _add_schedule(parser: CommandParser) -> None:
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument(
        "--every", dest="interval", type=whole(1, FORTNIGHT), metavar="SECONDS",
        help="poll in mode automatic; default: 60",
    )  # fmt: skip
    schedule.add_argument("--crontab", type=crontab, metavar="FIELDS", help='poll by "minute hour day month weekday"')
    parser.add_argument(
        "--at-once", action=BooleanOptionalAction, help="poll again at once when letters were found; default: no"
    )


def name(text: str) -> str:
    """The type of a dlq's name."""
    try:
        validate_slug(text)
    except ValidationError:
        raise ArgumentTypeError(f"{text!r} is no name: it takes letters, digits, hyphens and underscores") from None
    if len(text) > _LONGEST_NAME:
        raise ArgumentTypeError(f"a name has {_LONGEST_NAME} characters at most")
    return text


def given(text: str) -> str:
    """The type of what a shell may have made nothing of: a variable that is not set."""
    if not text.strip():
        raise ArgumentTypeError("it is empty: is the variable set?")
    return text


def selector(text: str) -> str:
    """The type of a selector, in its plainest form."""
    try:
        return str(Selector.parse(text))
    except SelectorIsUnclear as error:
        raise ArgumentTypeError(str(error)) from error


def shared(text: str) -> str:
    """The type of a selector of what letters have in common."""
    if Selector.parse(found := selector(text)).source in (Source.NONE, Source.CONTENT_HASH, Source.MESSAGE_ID):
        raise ArgumentTypeError(f'{text} is nothing that letters have in common; "off" if they carry nothing')
    return found


def crontab(text: str) -> str:
    """The type of a crontab's five fields."""
    try:
        registration.crontab(text).clean_fields()
    except (ValidationError, ValueError) as error:
        raise ArgumentTypeError(f'{text!r} is no schedule; "*/5 * * * *" is one') from error
    return " ".join(text.split())


def screen(found: Examination, done: Registered) -> Iterable[str]:
    """The examination for people: the queues, what would be written, what is wrong."""
    depth = found.sight.depth
    yield f"{found.proposal.name}: {found.sight.dlq.facts.arn}"
    yield f"  about {depth.visible:,} messages visible, {depth.in_flight:,} in flight"
    for seen in found.sight.origins.values():
        policy = seen.facts.redrive
        receives = (
            f"{policy.max_receives} receives of {seen.facts.visibility.total_seconds():g} s" if policy else "none"
        )
        yield f"  origin {seen.address.name} (redrive policy: {receives})"
    yield ""
    yield from findings_output.lines(done.differences, found.findings, new=done.new)


def last_line(name: str, done: Registered, *, acted: bool) -> str:
    """What was done."""
    if not done.differences:
        return f"{name} is as it was: nothing to change."
    if not acted:
        return f"This was a dry run: {name} is {'added' if done.new else 'changed'} with --confirm."
    told = f"{name} is {'added' if done.new else 'changed'}."
    if not any(one.field == "mode" for one in done.differences):
        return told
    nothing = "Nothing of it is redriven yet" if done.new else "Nothing of it is redriven by itself any more"
    ways = f"manage.py peek_dlq {name} looks into it, manage.py drain_dlq {name}, a dry run, plans."
    return f"{told} {automatic_redrive.outlook(name, by_hand=f'{nothing}: {ways}')}"


def _in_json(found: Examination, done: Registered, *, acted: bool) -> dict[str, Any]:
    return {
        "dlq": found.proposal.name,
        "dry_run": not acted,
        "refused": found.is_refused,
        "new": done.new,
        "arn": found.sight.dlq.facts.arn,
        "depth": {"visible": found.sight.depth.visible, "in_flight": found.sight.depth.in_flight},
        "origins": list(found.sight.origins),
        **findings_output.in_json(done.differences, found.findings),
    }
