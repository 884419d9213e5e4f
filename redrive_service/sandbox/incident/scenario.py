"""The steps of the incident during the redrive: a rule is added, the consumer fails again, and is repaired."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from redrive_service.sandbox.incident.observed_brakes import ObservedBrakes
from redrive_service.sandbox.shop.events import OF_SPOILT, SPOILT
from redrive_service.sandbox.shop.world import Shop

RULE = (
    ("--when", f"attribute:account equals {SPOILT}"),
    ("--then", "quarantine"),
    ("--reason", "invalid amounts"),
)
#: Size of the wave in which the rule is added. The consumer fails from the end of this wave on.
BEFORE_THE_LAST = 100
#: Messages that the consumer handles before it fails. It counts them itself, so the redrive's speed does not matter.
BREAKS_AFTER = 100
BROKEN_AT_MOST = 40.0  # max seconds until the consumer is repaired, even if no canary has failed


class Scenario:
    """The steps of the incident in order.

    The next step is taken when a status report of the service shows that its condition is met.

    Attributes:
        brakes: what the status reports so far show of waves, ramp-up, rule and circuit breaker.
    """

    def __init__(self, shop: Shop, *, dlq: str, manage: Callable[..., str], say: Callable[[str], None]) -> None:
        self.brakes = ObservedBrakes()
        self._shop, self._dlq, self._manage, self._say = shop, dlq, manage, say
        self._steps = self._story() if shop.shows_brakes else iter(())
        self._now: Mapping[str, Any] = {}

    def go_on(self, report: Mapping[str, Any]) -> None:
        """Read a status report of the DLQ: print its changes, and take the next step if its condition is met."""
        self._now = report
        for sentence in self.brakes.look(report):
            self._say(f"  {sentence}")
        next(self._steps, None)

    def _story(self) -> Iterator[None]:
        while not {BEFORE_THE_LAST, None} & {*self.brakes.waves}:  # a busy machine may only see the wave after it
            yield
        self._make_rule()
        while not self._shop.is_broken():
            yield
        self._say("The consumer breaks again: messages that it receives now come back to the DLQ.")
        until = time.monotonic() + BROKEN_AT_MOST
        while not self.brakes.failed and time.monotonic() < until:
            yield
        self._shop.mend()
        self._say("The consumer is repaired. The service finds out by its next canary.")

    def _make_rule(self) -> None:
        name = f"{self._dlq}-spoilt"
        words = " ".join(f"{option} '{value}'" if " " in value else f"{option} {value}" for option, value in RULE)
        self._say(f"One account sent {OF_SPOILT} invalid messages. A rule quarantines them while the run continues:")
        self._say(f"manage.py add_rule {name} --dlq {self._dlq} {words} --enable --confirm")
        said = [word for option in RULE for word in option]
        self._manage("add_rule", name, "--dlq", self._dlq, *said, "--enable", "--confirm")
