"""Functions of the commands that change or test rules: options, previews, and new decisions after a change."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.routing.first_match import Action
from reprocessing.management.arguments import OFF, number, or_off, whole_number
from reprocessing.management.console import find_dlq, find_named
from reprocessing.management.output import rule_output
from reprocessing.management.shared.progress import Pace
from reprocessing.models import RateClass, Rule, Target
from reprocessing.models.dlq import Jitter
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.routing import preview, route
from reprocessing.pipeline.routing.preview import Preview
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rules
from reprocessing.store.routing.rules import BoundRule

DAYS = 7  #: default of --days
_MOST_DAYS = 3_650  #: max of --days: ten years
_BACKOFF = ("backoff_base", "backoff_cap", "backoff_jitter")
_LONGEST_BACKOFF = 21_600.0  #: seconds: 6 h, the default max backoff
_SHOWN_FROM = 10_000  #: min messages for which a preview shows progress


def add_days(parser: CommandParser) -> None:
    """Add --days, which limits a preview to recently captured messages."""
    parser.add_argument(
        "--days", type=whole_number(1, _MOST_DAYS), default=DAYS, metavar="N",
        help="show the rule's effect on messages captured in the last N days (default: %(default)s)",
    )  # fmt: skip


def add_backoff(parser: CommandParser, *, base: Any = None) -> None:  # noqa: ANN401  # an argument's type
    """Add the options of a backoff.

    For a DLQ, `base` is the function that reads --backoff-base. For a rule or a rate class, `base` is None: the option
    is then a number, or "off" for the backoff of the DLQ.
    """
    what = (
        "initial backoff: seconds from the first failed attempt to the next attempt; doubles after each further "
        "failure (default: 60)"
        if base
        else "initial backoff: seconds from the first failed attempt to the next attempt, or off for the backoff of "
        "the DLQ (default: off)"
    )
    base = base or or_off(number(0, MAX_SECONDS))
    parser.add_argument("--backoff-base", type=base, metavar="SECONDS", help=what)
    parser.add_argument(
        "--backoff-cap",
        type=number(0, MAX_SECONDS),
        metavar="SECONDS",
        help="max backoff: max seconds between two attempts (default: 21600)",
    )
    parser.add_argument(
        "--jitter",
        dest="backoff_jitter",
        choices=Jitter.values,
        help="jitter. full: wait a random part of the backoff; none: wait the whole backoff (default: full)",
    )


def find_rule(name: str) -> Rule:
    """Return the rule with this name.

    Raises:
        CommandError: no rule has this name.
    """
    hint = "manage.py add_rule NAME --every-message --then hold --reason WHY --confirm"
    return find_named(Rule.objects.select_related("dlq", "target", "rate_class"), name, kind="rule", hint=hint)


def find_rate_class(name: str) -> RateClass:
    """Return the rate class with this name.

    Raises:
        CommandError: no rate class has this name.
    """
    hint = "manage.py add_rate_class NAME --rate R --reason WHY --confirm"
    return find_named(RateClass.objects.all(), name, kind="rate class", hint=hint)


def backoff_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the backoff columns that the options set.

    If only some options of the backoff were given, the other columns get their defaults. If no option was given, the
    result is empty. If --backoff-base is off, all values are None.

    Raises:
        CommandError: the options contradict each other.
    """
    given = {option: options[option] for option in _BACKOFF if options[option] is not None}
    if not given:
        return {}
    if given.get("backoff_base") == OFF:
        if len(given) > 1:
            raise CommandError("--backoff-base off removes the backoff. Leave out --backoff-cap and --jitter.")
        return dict.fromkeys(_BACKOFF)
    if "backoff_base" not in given:
        raise CommandError("--backoff-cap and --jitter need an initial backoff. Add: --backoff-base SECONDS")
    cap = given.get("backoff_cap", max(_LONGEST_BACKOFF, given["backoff_base"]))
    if cap < given["backoff_base"]:
        raise CommandError("--backoff-cap is less than --backoff-base. Raise --backoff-cap.")
    jitter = given.get("backoff_jitter", Jitter.FULL.value)
    return {"backoff_base": given["backoff_base"], "backoff_cap": cap, "backoff_jitter": jitter}


def rule_fields(options: Mapping[str, Any], known: Rule | None) -> dict[str, Any]:
    """Return the values of the columns that the options set in a rule. Columns that its action does not use are None.

    `known` is the stored rule, or None for a new rule.

    Raises:
        CommandError: options contradict each other, or name a row that does not exist.
        QueueUnreachable: the target queue does not answer.
    """
    fields: dict[str, Any] = {}
    if options["then"]:
        fields["action"] = options["then"]
        fields |= _unused(Action(options["then"]))
    if options["when"] and options["every_message"]:
        raise CommandError("--every-message matches every message, --when does not. Leave out one of them.")
    if options["when"] or options["every_message"]:
        fields["conditions"] = list(options["when"] or [])
    for option, (column, look_up) in {
        "dlq": ("dlq", find_dlq), "rate_class": ("rate_class", find_rate_class), "to": ("target", find_target)
    }.items():  # fmt: skip
        if options[option] is not None:
            fields[column] = None if options[option] == OFF else look_up(options[option])
    fields |= {option: options[option] for option in ("position", "delay") if options[option] is not None}
    for option in ("valid_from", "valid_until"):
        if options[option] is not None:
            fields[option] = None if options[option] == OFF else options[option]
    fields |= backoff_fields(options)
    if options["enable"]:
        fields["enabled"] = True
    if known is None:
        _refuse_incomplete(options["name"], fields)
    return fields


def _refuse_incomplete(name: str, fields: dict[str, Any]) -> None:
    if "action" not in fields:
        raise CommandError(f"The rule {name} is new, so it needs an action. Add: --then ACTION")
    if "conditions" not in fields:
        raise CommandError(f"The rule {name} is new, so it needs conditions. Add --when CONDITION, or --every-message.")


def _unused(action: Action) -> dict[str, Any]:
    """Return the columns that this action does not use, each with the value None."""
    unused: dict[str, Any] = {} if action is Action.DELAY else {"delay": None}
    if action not in {Action.REPLAY, Action.DIVERT}:
        unused["target"] = None
    if action not in {Action.REPLAY, Action.DELAY}:
        unused |= dict.fromkeys(["rate_class", *_BACKOFF])
    return unused


def find_target(text: str) -> Target:
    """Return the target that `text` names: a stored target, or a new, unsaved target for the URL or ARN of a queue.

    Raises:
        InvalidTarget: no target has this name, or several targets have this name.
        QueueUnreachable: SQS does not answer for the queue.
    """
    return examine.find_target(text) or examine.queue_target(text)


def rules_with(row: Rule) -> list[BoundRule]:
    """Return, for a preview, all rules that are in force, and this rule as if it were enabled."""
    mine = rules.bind(row)
    return [*(bound for bound in rules.in_force().rules if bound.rule.id != mine.rule.id), mine]


def preview_of(row: Rule, *, days: int) -> tuple[dict[str, Any], list[str]]:
    """Return what this rule would do to messages captured in the last `days` days, as JSON and as lines of text."""
    found = preview_rules(rules_with(row), days=days, dlq=row.dlq_id, focus=rules.bind(row).rule.id)
    return {"preview": rule_output.in_json(found, days=days)}, list(rule_output.preview_lines(found, days=days))


def preview_rules(some: list[BoundRule], *, days: int, dlq: int | None, focus: int | None = None) -> Preview:
    """Return what these rules would do to messages captured in the last `days` days. Show progress on a terminal.

    If `dlq` is given, only messages of the DLQ with this id are evaluated. If `focus` is given, the result is only
    about the rule with this id.
    """
    pace = Pace()

    def tell(letters: int) -> None:
        if sys.stderr.isatty() and letters >= _SHOWN_FROM:
            sys.stderr.write(f"\r{letters:,} messages evaluated{pace.add(letters)}")
            sys.stderr.flush()

    return preview.letters(
        some, since=lanes.database_now() - timedelta(days=days), dlq=dlq, focus=focus, on_progress=tell
    )


def reroute_held() -> int:
    """Let the rules decide again about all messages that a rule held or delayed. Return the number of messages."""
    return route.wake_stopped(route.RuleBook.load())
