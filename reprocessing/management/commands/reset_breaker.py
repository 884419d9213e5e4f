"""`manage.py reset_breaker`: letters go to a target again, or go there no more for a while, since a person says so."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from reprocessing.management.console import Console, add_confirm, add_json, add_name, add_person, find, number, when
from reprocessing.management.output import safety_output
from reprocessing.models import DeadLetterQueue, RateClass, Target
from reprocessing.models.target import FORTNIGHT
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import breaker_resets, breaker_status
from reprocessing.store.safety.breaker_status import Bearing


class Command(Console):
    """Closes breakers, or opens them."""

    help = (
        "Closes the breakers of a dlq's targets: letters go again, slowly at first, and what was seen before no longer "
        "counts. With --open it opens them: nothing goes there for a while, then one letter tries. Other dlqs that "
        "share a target are named. Without --confirm it tells how the breakers stand."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument("--target", metavar="ARN_OR_NAME", help="one of its targets alone")
        parser.add_argument("--rate-class", metavar="NAME", help="the breakers of one class of letters alone")
        parser.add_argument("--open", action="store_true", help="open them instead")
        parser.add_argument(
            "--for", dest="seconds", type=number(0.1, FORTNIGHT), metavar="SECONDS",
            help="how long nothing goes, with --open; default: each breaker's cooldown",
        )  # fmt: skip
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        if options["seconds"] is not None and not options["open"]:
            raise CommandError("--for says how long a breaker stays open: say --open too, or leave it out.")
        dlq = find(options["name"])
        targets = meant(dlq, options["target"])
        which = _class(options["rate_class"])
        rate_class = which.pk if which else None
        found = breaker_status.bearings([one.pk for one in targets], rate_class=rate_class)
        if not found:
            raise CommandError(f"No letters of {which} have gone to a target of {dlq.name}: there is no such breaker.")
        if options["confirm"]:
            to: Literal["closed", "open"] = "open" if options["open"] else "closed"
            found = breaker_resets.reset(
                [one.pk for one in targets], to=to, by=options["by"], reason=options["reason"],
                seconds=options["seconds"], rate_class=rate_class,
            )  # fmt: skip
        self.tell(dlq, found, options)

    def tell(self, dlq: DeadLetterQueue, found: list[Bearing], options: dict[str, Any]) -> None:
        """How they stand, and what was done or would be."""
        now = lanes.clock()
        sharing = others(dlq, {one.target_id for one in found})
        breakers = [safety_output.told(one, now) for one in found]
        if options["json"]:
            self.report(
                {
                    "dlq": dlq.name,
                    "dry_run": not options["confirm"],
                    "to": "open" if options["open"] else "closed",
                    "shared_with": sharing,
                    "breakers": breakers,
                }
            )
            return
        for one in breakers:
            self.say(f"{one['name']}: {safety_output.standing(one, now)}; {safety_output.allowed(one)}")
        if sharing:
            self.say(f"Letters of {', '.join(sharing)} go there, too.")
        self.say(last_line(options, found, now))


def last_line(options: dict[str, Any], found: list[Bearing], now: datetime) -> str:
    """What was done, or what --confirm would do."""
    these = "the breaker" if len(found) == 1 else f"the {len(found)} breakers"
    if not options["confirm"]:
        if not options["open"]:
            return f"This was a dry run: with --confirm {these} would be closed, and the rate would ramp up anew."
        rests = {options["seconds"] or one.cooldown for one in found}
        length = " to ".join(f"{rest:g}" for rest in sorted({min(rests), max(rests)}))
        return f"This was a dry run: with --confirm {these} would be open for {length} seconds."
    if options["open"]:
        until = max((one.next_canary(now) or now for one in found), default=now)
        return f"Opened {these}: nothing goes until {when(until)}, then one letter tries."
    return f"Closed {these}: letters go again, and the rate ramps up anew."


def meant(dlq: DeadLetterQueue, named: str | None) -> list[Target]:
    """The targets of a dlq's letters, or the one of them that is named.

    Raises:
        CommandError: there is none, or none of this name; it names those there are.
    """
    ruled = Q(rules__isnull=False) & (Q(rules__dlq=dlq) | Q(rules__dlq=None))
    found = list(Target.objects.filter(Q(origins__dlq=dlq) | ruled).order_by("arn").distinct())
    some = [one for one in found if named in {None, one.arn, str(one)}]
    if some:
        return some
    if not found:
        raise CommandError(
            f"{dlq.name} has no target yet. Name its origin: manage.py add_dlq {dlq.name} --origin ARN --confirm"
        )
    there_are = ", ".join(str(one) for one in found)
    raise CommandError(f'"{named}" is no target of {dlq.name}. There are: {there_are}.')


def others(dlq: DeadLetterQueue, targets: Collection[int]) -> list[str]:
    """The other dlqs whose letters go back to these targets."""
    sharing = DeadLetterQueue.objects.filter(origins__target__in=targets).exclude(pk=dlq.pk)
    return list(sharing.order_by("name").values_list("name", flat=True).distinct())


def _class(name: str | None) -> RateClass | None:
    if name is None:
        return None
    found = RateClass.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(RateClass.objects.order_by("name").values_list("name", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "There is none yet. Make one: manage.py add_rate_class NAME --rate R --reason WHY --confirm"
        )
        raise CommandError(f'No class of letters is named "{name}". {there_are}')
    return found
