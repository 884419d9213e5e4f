"""What the commands about rules share: what was said of one, what it would do, and what has to follow a change."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.routing.first_match import Action
from reprocessing.management.console import find, number, whole
from reprocessing.management.output.rule_output import OFF
from reprocessing.models import RateClass, Rule, Target
from reprocessing.models.dlq import Jitter
from reprocessing.models.target import FORTNIGHT
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.routing import preview, route
from reprocessing.pipeline.routing.preview import Preview
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rules
from reprocessing.store.routing.rules import Bound

#: Days that a preview looks back, unless it is told otherwise.
DAYS = 7
_MOST_DAYS = 3_650
_BACKOFF = ("backoff_base", "backoff_cap", "backoff_jitter")
_LONGEST_BACKOFF = 21_600.0
_TOLD_EVERY = 10_000


def add_days(parser: CommandParser) -> None:
    """How far a preview looks back."""
    parser.add_argument(
        "--days", type=whole(1, _MOST_DAYS), default=DAYS, metavar="N",
        help="what it would do to the letters captured in the last N days (%(default)s)",
    )  # fmt: skip


def add_backoff(parser: CommandParser) -> None:
    """A backoff of its own."""
    parser.add_argument(
        "--backoff-base", type=or_off(number(0, FORTNIGHT)), metavar="SECONDS",
        help='the first rest after a failure, instead of the dlq\'s; "off": the dlq\'s',
    )  # fmt: skip
    parser.add_argument(
        "--backoff-cap", type=number(0, FORTNIGHT), metavar="SECONDS", help="the longest rest; default: 21600"
    )
    parser.add_argument("--jitter", dest="backoff_jitter", choices=Jitter.values, help="default: full")


def or_off(read: Any) -> Any:  # noqa: ANN401 - the type of an argument, and what it reads
    """The type of an argument that can be taken back."""
    return lambda text: OFF if text == OFF else read(text)


def find_rule(name: str) -> Rule:
    """The rule of this name.

    Raises:
        CommandError: there is none; it names those there are.
    """
    found = Rule.objects.select_related("dlq", "target", "rate_class").filter(name=name).first()
    if found is None:
        known = ", ".join(Rule.objects.order_by("position", "id").values_list("name", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "None has been made yet. Make one: manage.py add_rule NAME --dlq DLQ --then hold --reason WHY shows it"
        )
        raise CommandError(f'No rule is named "{name}". {there_are}')
    return found


def said_of_backoff(options: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a backoff; what was not said is the usual, as long as anything was said."""
    given = {one: options[one] for one in _BACKOFF if options[one] is not None}
    if not given:
        return {}
    if given.get("backoff_base") == OFF:
        if len(given) > 1:
            raise CommandError("--backoff-base off takes the whole backoff back. Leave --backoff-cap and --jitter out.")
        return dict.fromkeys(_BACKOFF)
    if "backoff_base" not in given:
        raise CommandError("A backoff begins somewhere: say --backoff-base too.")
    cap = given.get("backoff_cap", max(_LONGEST_BACKOFF, given["backoff_base"]))
    if cap < given["backoff_base"]:
        raise CommandError("The backoff's cap is less than where it begins. Raise --backoff-cap.")
    jitter = given.get("backoff_jitter", Jitter.FULL.value)
    return {"backoff_base": given["backoff_base"], "backoff_cap": cap, "backoff_jitter": jitter}


def said_of_rule(options: Mapping[str, Any], known: Rule | None) -> dict[str, Any]:
    """What the command line says of a rule, by the names of its columns; what an action does not know is taken back.

    Raises:
        CommandError: it contradicts itself, or names what is not there.
        QueueIsOutOfReach: the queue that letters are to go to could not be asked.
    """
    fields: dict[str, Any] = {}
    if options["then"]:
        fields["action"] = options["then"]
        fields |= _taken_back(Action(options["then"]))
    fields |= _conditions(options)
    for option, (column, found) in {
        "dlq": ("dlq", find), "rate_class": ("rate_class", _rate_class), "to": ("target", target)
    }.items():  # fmt: skip
        if options[option] is not None:
            fields[column] = None if options[option] == OFF else found(options[option])
    fields |= {one: options[one] for one in ("position", "delay") if options[one] is not None}
    for one in ("valid_from", "valid_until"):
        if options[one] is not None:
            fields[one] = None if options[one] == OFF else options[one]
    fields |= said_of_backoff(options)
    if options["enable"]:
        fields["enabled"] = True
    if known is None:
        _needs(options)
    return fields


def _conditions(options: Mapping[str, Any]) -> dict[str, Any]:
    if options["when"] and options["every_letter"]:
        raise CommandError("--every-letter is for letters of any content, --when is not. Say one of them.")
    said = options["when"] or options["every_letter"]
    return {"conditions": list(options["when"] or [])} if said else {}


def _needs(options: Mapping[str, Any]) -> None:
    if not options["then"]:
        raise CommandError(f"{options['name']} is new: say what is to become of its letters, --then ACTION.")
    if not options["when"] and not options["every_letter"]:
        raise CommandError(
            f"{options['name']} is new: say which letters it is for, --when CONDITION, or --every-letter."
        )


def _taken_back(action: Action) -> dict[str, Any]:
    """What an edited rule of another action may have had."""
    gone: dict[str, Any] = {} if action is Action.DELAY else {"delay": None}
    if action not in {Action.REPLAY, Action.DIVERT}:
        gone["target"] = None
    if action not in {Action.REPLAY, Action.DELAY}:
        gone |= dict.fromkeys(["rate_class", *_BACKOFF])
    return gone


def _rate_class(name: str) -> RateClass:
    found = RateClass.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(RateClass.objects.order_by("name").values_list("name", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "None has been made yet. Make one: manage.py add_rate_class NAME --rate R --reason WHY --confirm"
        )
        raise CommandError(f'No rate class is named "{name}". {there_are}')
    return found


def target(text: str) -> Target:
    """The target that is meant: one that is known, or a queue by its URL or ARN, perhaps without a row yet.

    Raises:
        TargetIsUnclear: no such target is known, or several are.
        QueueIsOutOfReach: the queue could not be asked.
    """
    return examine.known(text) or examine.queue(text)


def with_rule(row: Rule) -> list[Bound]:
    """The rules that hold, and this one as if it did."""
    mine = rules.bound(row)
    return [*(one for one in rules.in_force().rules if one.rule.id != mine.rule.id), mine]


def look(some: list[Bound], *, days: int, dlq: int | None, focus: int | None = None) -> Preview:
    """What these rules would do to the letters of the last days; on a terminal it says how far it is."""
    since = lanes.clock() - timedelta(days=days)
    return preview.letters(some, since=since, dlq=dlq, focus=focus, told=_told)


def _told(letters: int) -> None:
    if sys.stderr.isatty() and letters >= _TOLD_EVERY:
        sys.stderr.write(f"\r{letters:,} letters asked about")
        sys.stderr.flush()


def followed() -> int:
    """After a change was committed: what rules stopped is asked anew; how many letters that were."""
    return route.wake(route.Book.load())
