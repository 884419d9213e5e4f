"""The command `manage.py add_dlq`, which registers a DLQ, or changes its settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.search.search_fields import list_problem
from reprocessing.management.arguments import OFF, add_change_options, slug
from reprocessing.management.console import Console
from reprocessing.management.options import dlq_options, target_kind_options
from reprocessing.management.options.safety_options import add_safety
from reprocessing.management.options.target_policy_options import (
    RATE_FIELDS,
    add_outcome,
    add_to,
    find_destination,
    given_fields,
)
from reprocessing.management.output import findings_output
from reprocessing.management.output.findings_output import outcome
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import automatic_redrive, dlq_proposal, registration
from reprocessing.store.dlqs.registration import Registered

#: Columns of a DLQ that command-line options set.
_DLQ = (
    "mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "max_attempts", "backoff_base",
    "backoff_cap", "backoff_jitter", "new_key_delay", "when_parked", "stale", "receive_limit", "parking_url", "at_once",
    "interval", "crontab", "message_type", "tenant", "waves", "wave_success", "give_up_after", "role_arn", "policy",
    "held_copies_limit", "keep_bodies", "public_fields", "masked_fields", "search_fields", "approval_above",
)  # fmt: skip


class Command(Console):
    """Register a DLQ, or change its settings.

    Examines the DLQ and its source queues, and shows problems. Receives and sends no messages. If the DLQ is registered
    already, changes only the settings whose options are given.

    Examples:
        add_dlq orders --url https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dlq
        add_dlq orders --ordering-key attribute:customer --rate 20 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="your name for the DLQ: letters, digits, - _")
        dlq_options.add_queues(parser)
        dlq_options.add_keys(parser)
        dlq_options.add_attempts(parser)
        add_outcome(parser)
        add_to(parser)
        add_safety(parser)
        target_kind_options.add_celery_options(parser)
        dlq_options.add_schedule(parser)
        add_change_options(parser, reason="add_dlq")

    def answer(self, options: dict[str, Any]) -> None:
        wanted = asked(options)
        if wanted.url is None and not DeadLetterQueue.objects.filter(name=wanted.name).exists():
            raise CommandError(f"{wanted.name} has not been added yet, so its URL is needed. Add: --url URL")
        found = examine.dlq(wanted, conf.current())
        done = Registered(new=found.observed.row is None, differences=dlq_proposal.differences(found.proposal))
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
            raise CommandError(f"{wanted.name}: nothing was saved. Fix what REFUSE marks above, then run this again.")
        if not options["json"]:
            self.say(last_line(wanted.name, done, acted=acted))


def asked(options: dict[str, Any]) -> Wanted:
    """Return the settings of the DLQ and of its target that the command line gives."""
    return Wanted(
        name=options["name"],
        url=options["url"],
        sources=tuple(options["source"] or ()),
        to=find_destination(options["to"]) if options["to"] not in {None, OFF} else None,
        takes_back=options["to"] == OFF,
        teams=_teams(options["team"]),
        dlq=given_fields(options, _DLQ) | _search_fields(options["search_fields"]),
        target=given_fields(options, (*RATE_FIELDS, *target_kind_options.CELERY_FIELDS)),
    )


def _search_fields(named: list[str] | None) -> dict[str, list[str]]:
    if named is None:
        return {}
    found = [] if named == [OFF] else named
    if problem := list_problem(found):
        raise CommandError(f"--search-field: {problem}")
    return {"search_fields": found}


def _teams(named: list[str] | None) -> tuple[str, ...] | None:
    if named is None:
        return None
    if OFF in named and len(named) > 1:
        raise CommandError(
            f"--team {OFF} means no team, so other teams cannot be given with it. Leave out one or the other."
        )
    return () if named == [OFF] else tuple(sorted(set(named)))


def screen(found: Examination, done: Registered) -> Iterable[str]:
    """Yield the lines to print: the DLQ with its depth, its source queues, the changed settings and the problems."""
    depth = found.observed.depth
    yield f"{found.proposal.name}: {found.observed.dlq.facts.arn}"
    yield f"  about {depth.visible:,} message{'' if depth.visible == 1 else 's'} visible, {depth.in_flight:,} in flight"
    for source in found.observed.sources.values():
        policy = source.facts.redrive
        visibility = f"visibility timeout {source.facts.visibility.total_seconds():g} s"
        receives = f"maxReceiveCount {policy.max_receives}, {visibility}" if policy else "none"
        yield f"  source queue {source.address.name} (redrive policy: {receives})"
    yield ""
    yield from findings_output.lines(done.differences, found.findings, new=done.new)


def last_line(name: str, done: Registered, *, acted: bool) -> str:
    """Return a sentence about what was done with the DLQ or, in a dry run, would be done, and about the next step."""
    result = outcome(name, new=done.new, changed=bool(done.differences), acted=acted)
    before = [change.before for change in done.differences if change.field == "mode"]
    if not acted or not before:
        return result
    ends = before == [Mode.AUTOMATIC]
    nothing = "New messages are no longer redriven automatically" if ends else "Nothing is redriven yet"
    hints = f"manage.py peek_dlq {name} --confirm shows messages; manage.py drain_dlq {name} shows a plan."
    return f"{result} {automatic_redrive.describe_redrive(name, by_hand=f'{nothing}. {hints}')}"


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
