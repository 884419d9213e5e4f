"""The demo's incident: a shop's consumer breaks, everything dies, it is mended, and the service brings it all back.

On its way the service's brakes are seen at work: waves, ramp, a rule for an account that is spoilt, and the breaker, as
the consumer breaks once more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.incident.observed_brakes import ObservedBrakes
from redrive_service.sandbox.incident.scenario import BREAKS_AFTER, Scenario
from redrive_service.sandbox.judge import BreakerOpening, Judgement, Offence, ServiceRecords
from redrive_service.sandbox.shop.world import Shop
from redrive_service.sandbox.stopping import raise_if_stopped

RATE = 200  # letters a second
MAX_ATTEMPTS = 3
COOLDOWN = 2.5  # seconds: more than what was let go before the breaker opened needs to the wire
POLICY = (
    ("--ordering-key", "attribute:account"),
    ("--sequence", "attribute:sequence"),
    ("--idempotency-key", "attribute:event_id"),
    ("--outcome", "absence"),
    ("--advance", "settled"),
    ("--mode", "automatic"),
)
PACE = (
    ("--rate", str(RATE)),
    ("--max-attempts", str(MAX_ATTEMPTS)),
    ("--every", "1"),
    ("--backoff-base", "1"),
    ("--backoff-cap", "1"),
    ("--new-key-delay", "1"),
)
# The breaker is to be seen at work, so no wave stops the run for a person; and the last few letters, poison that is
# tried again with nothing beside it, are not to open it once more.
BRAKES = (
    ("--ramp-from", "0.2"),
    ("--ramp-every", "1"),
    ("--wave-success", "0"),
    ("--breaker-threshold", "10"),
    ("--breaker-cooldown", f"{COOLDOWN:g}"),
    ("--breaker-closes-after", "1"),
)
WITHIN = 170.0  # seconds
_BREATH = 0.25
_LOOKS_EVERY = "0.25"  # seconds between two looks of the service's
_EXAMPLES = 10  # of broken promises

Say = Callable[[str], None]


class IncidentTimedOut(SandboxError):
    """The service has not finished the shop's letters in time."""


class StatusCommandEnded(SandboxError):
    """What was to tell how the service stands has ended."""


class RunningCommand(Protocol):
    """A command that goes on, and what it has written."""

    def log_since_start(self) -> str:
        """Return all of it."""

    def has_ended(self) -> bool:
        """Return whether it writes no more."""

    def stop(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The service, as people use it.

    Attributes:
        manage: runs a command of manage.py and gives what it wrote to standard output.
        watch: starts one that goes on.
    """

    manage: Callable[..., str]
    watch: Callable[..., RunningCommand]


@dataclass(frozen=True, slots=True)
class Summary:
    """How the incident ended.

    Attributes:
        seconds: from the first poll to the last letter finished.
        brakes: what was seen of them, and whether it was `demanded`: there were letters enough to show them.
    """

    judgement: Judgement
    letters: int
    seconds: float
    brakes: ObservedBrakes
    demanded: bool

    @property
    def kept(self) -> bool:
        """Whether every promise was kept, every letter is accounted for, and every brake was seen."""
        counts = self.judgement.counts()
        ended = counts["delivered"] + counts["parked"] + counts["closed_as_duplicate"]
        return self.judgement.clean and counts["letters"] == ended == self.letters and not self._missing()

    def figures(self) -> dict[str, int | float | list[int | None]]:
        """Return the figures, for --json."""
        return {
            **self.judgement.counts(),
            "opened": len(self.brakes.shut),
            "quarantined": self.brakes.quarantined,
            "waves": self.brakes.waves,
            "seconds": round(self.seconds, 1),
        }

    def sentences(self) -> list[str]:
        """Return the figures in words, and the first broken promises."""
        counts = self.judgement.counts()
        ended = (
            f"{counts['delivered']} delivered, {counts['parked']} parked, {counts['closed_as_duplicate']} duplicates"
        )
        broken = ", ".join(f"{offence.value.replace('_', ' ')} {counts[offence]}" for offence in Offence)
        return [
            f"{counts['letters']} letters in {self.seconds:.0f} s: {ended}.",
            f"The judge, from the call log and the consumer's log: {broken}.",
            *(f"  {finding.sentence}" for finding in self.judgement.findings[:_EXAMPLES]),
            *(f"  Not seen at work: {name}." for name in self._missing()),
        ]

    def _missing(self) -> list[str]:
        return self.brakes.missing() if self.demanded else []


class Incident:
    """One incident with its own queues; `run` tells it and has it judged."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, service: Service, say: Say, seed: int) -> None:
        self._folder = folder
        self._environment = environment
        self._service = service
        self._say = say
        self._seed = seed
        self.name = f"shop-{seed:08x}"

    def run(self, letters: int) -> Summary:
        """Run the incident, from the first event to the last letter.

        Raises:
            SandboxError: it did not come to its end; the message says where it stopped.
            Stopped: somebody asked the sandbox to stop meanwhile.
        """
        with Shop(
            self._folder, environment=self._environment, letters=letters, seed=self._seed, name=self.name
        ) as shop:
            self._let_die(shop)
            shop.deliver_twice()
            shop.mend(handles=BREAKS_AFTER if shop.shows_brakes else None)
            self._say("The consumer is mended. SQS will hand out one batch of the dead letters twice.")
            began = time.monotonic()
            self._add_dlq(shop)
            plot = Scenario(shop, dlq=self.name, manage=self._service.manage, say=self._say)
            self._await_finished(letters, plot)
            seconds = time.monotonic() - began
            experiment = shop.experiment(max_attempts=MAX_ATTEMPTS, rate=RATE, burst=RATE, cooldown=COOLDOWN)
            judgement = shop.judged(experiment, records_of(self._states(), plot.brakes.shut))
            return Summary(judgement, letters, seconds, plot.brakes, demanded=shop.shows_brakes)

    def _let_die(self, shop: Shop) -> None:
        accounts = len({event.account for event in shop.events})
        self._say(f"A shop publishes {len(shop.events)} events of {accounts} accounts to {shop.source};")
        self._say("its consumer is broken, and some of the events are such that nobody can process them.")
        shop.break_down()
        shop.publish()
        shop.await_dead()
        self._say(f"All of them are dead: {shop.dead()} letters in {shop.dlq}.")

    def _add_dlq(self, shop: Shop) -> None:
        """Have the service watch the shop's dlq, with brakes that suit a demo."""
        options = [*POLICY, *PACE, *BRAKES]
        words = " ".join(f"{name} {value}" for name, value in options)
        self._say(f"manage.py add_dlq {self.name} --url {shop.dlq_url} {words} --confirm")
        self._service.manage(
            "add_dlq", self.name, "--url", shop.dlq_url, *(word for option in options for word in option), "--confirm"
        )

    def _await_finished(self, letters: int, plot: Scenario) -> None:
        deadline, before = time.monotonic() + WITHIN, ""
        for told in self._looks():
            counts = {state: number for state, number in told["letters"].items() if number}
            now = ", ".join(f"{number} {state}" for state, number in counts.items()) or "nothing captured yet"
            if now != before:
                self._say(f"  {now}")
                before = now
            plot.go_on(told)
            if sum(counts.values()) >= letters and not told["unfinished"]:
                return
            if time.monotonic() > deadline:
                raise IncidentTimedOut(f"After {WITHIN:g} s not every letter of {self.name} is finished: {now}.")

    def _looks(self) -> Iterator[dict[str, Any]]:
        """Return what the service says of the shop's dlq, again and again, each once."""
        watching = self._service.watch("redrive_status", self.name, "--json", "--watch", "--every", _LOOKS_EVERY)
        try:
            seen = 0
            while True:
                looks = [line for line in watching.log_since_start().split("\n")[:-1] if line.startswith("{")]
                for look in looks[seen:]:
                    yield dict(json.loads(look)["dlqs"][0])
                seen = len(looks)
                if watching.has_ended():
                    raise StatusCommandEnded(f"redrive_status --watch has ended: {watching.log_since_start()[-500:]}")
                raise_if_stopped()
                time.sleep(_BREATH)
        finally:
            watching.stop()

    def _states(self) -> dict[str, str]:
        """Return the state of every letter, by the message id under which it died, as the service tells it."""
        told = json.loads(self._service.manage("redrive_status", self.name, "--json", "--letters"))
        return dict(told["dlqs"][0]["states"])


def records_of(states: Mapping[str, str], shut: Sequence[BreakerOpening] = ()) -> ServiceRecords:
    """The service's books, from its letters' states and its word on when the breaker was open."""

    def those(*wanted: str) -> frozenset[str]:
        return frozenset(name for name, state in states.items() if state in wanted)

    return ServiceRecords(
        parked=those("parked"),
        discarded=those("discarded"),
        duplicates=those("duplicate"),
        open=those("captured", "waiting", "sending", "awaiting"),
        shut=tuple(shut),
    )
