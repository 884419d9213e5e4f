"""The command `manage.py reset_breaker`, which closes or opens circuit breakers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import add_change_options, add_name, number
from reprocessing.management.console import Console, find_dlq, format_time
from reprocessing.management.output import safety_output
from reprocessing.management.shared.dlq_targets import targets_of
from reprocessing.management.shared.rule_command import find_rate_class
from reprocessing.models import DeadLetterQueue
from reprocessing.models.target import MAX_SECONDS
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import breaker_resets, breaker_status
from reprocessing.store.safety.breaker_status import BreakerStatus


class Command(Console):
    """Close the circuit breakers of a DLQ's targets, or open them.

    After a circuit breaker is closed, messages are sent again at a rate that ramps up, and earlier failures no longer
    count. With --open, nothing is sent until the cooldown or the time of --for is over. Then one canary is sent. Shows
    which other DLQs send to the same targets.

    Examples:
        reset_breaker orders --reason "consumer fixed" --confirm
        reset_breaker orders --open --for 600 --reason "deployment" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--target", metavar="ARN_OR_NAME", help="only the circuit breaker of the target with this name or ARN"
        )
        parser.add_argument(
            "--rate-class", metavar="NAME", help="only the circuit breakers of this rate class (see add_rate_class)"
        )
        parser.add_argument("--open", action="store_true", help="open the circuit breakers instead of closing them")
        parser.add_argument(
            "--for", dest="seconds", type=number(0.1, MAX_SECONDS), metavar="SECONDS",
            help="with --open: time until a canary is sent (default: the cooldown of each breaker)",
        )  # fmt: skip
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        if options["seconds"] is not None and not options["open"]:
            raise CommandError("--for sets how long a breaker stays open. Add --open, or leave out --for.")
        dlq = find_dlq(options["name"])
        targets = [target.pk for target in targets_of(dlq, options["target"])]
        which = find_rate_class(options["rate_class"]) if options["rate_class"] is not None else None
        rate_class = which.pk if which else None
        found = breaker_status.breaker_statuses(targets, rate_class=rate_class)
        if not found:
            raise CommandError(f"No messages of {which} were sent to a target of {dlq.name}: there is no breaker.")
        if options["confirm"]:
            to: Literal["closed", "open"] = "open" if options["open"] else "closed"
            found = breaker_resets.reset(
                targets, to=to, by=options["by"], reason=options["reason"], seconds=options["seconds"],
                rate_class=rate_class,
            )  # fmt: skip
        self.tell(dlq, found, options)

    def tell(self, dlq: DeadLetterQueue, found: list[BreakerStatus], options: dict[str, Any]) -> None:
        now = lanes.database_now()
        sharing = DeadLetterQueue.objects.filter(sources__target__in={one.target_id for one in found})
        names = list(sharing.exclude(pk=dlq.pk).order_by("name").values_list("name", flat=True).distinct())
        breakers = [safety_output.breaker_in_json(one, now) for one in found]
        if options["json"]:
            to = "open" if options["open"] else "closed"
            result = {"dlq": dlq.name, "dry_run": not options["confirm"], "to": to}
            self.report({**result, "shared_with": names, "breakers": breakers})
            return
        for breaker in breakers:
            self.say(
                f"{breaker['name']}: {safety_output.breaker_text(breaker, now)}; {safety_output.rate_text(breaker)}"
            )
        if names:
            self.say(f"Messages of {', '.join(names)} go to the same targets.")
        self.say(last_line(options, found, now))


def last_line(options: dict[str, Any], found: list[BreakerStatus], now: datetime) -> str:
    """Return what was done to the circuit breakers, or what --confirm would do."""
    these = "the breaker" if len(found) == 1 else f"the {len(found)} breakers"
    if not options["confirm"]:
        if not options["open"]:
            return f"This was a dry run: with --confirm {these} would be closed, and the rate would ramp up again."
        cooldowns = {options["seconds"] or one.cooldown for one in found}
        length = " to ".join(f"{seconds:g}" for seconds in sorted({min(cooldowns), max(cooldowns)}))
        return f"This was a dry run: with --confirm {these} would be open for {length} seconds."
    if options["open"]:
        until = max((one.next_canary(now) or now for one in found), default=now)
        return f"Opened {these}: nothing is sent until {format_time(until)}, then one canary."
    return f"Closed {these}: messages are sent again, and the rate ramps up."
