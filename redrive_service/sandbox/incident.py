"""The demo's incident: a shop's consumer breaks, everything dies, it is mended, and the service brings it all back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.judge import Books, Judgement, Offence
from redrive_service.sandbox.shop.world import Shop
from redrive_service.sandbox.stopping import heed

RATE = 200  # letters a second
MAX_ATTEMPTS = 3
BRAKES = (
    ("--rate", str(RATE)),
    ("--max-attempts", str(MAX_ATTEMPTS)),
    ("--every", "1"),
    ("--backoff-base", "1"),
    ("--backoff-cap", "1"),
    ("--quiet-for", "1"),
)
POLICY = (
    ("--ordering-key", "attribute:account"),
    ("--sequence", "attribute:sequence"),
    ("--idempotency-key", "attribute:event_id"),
    ("--outcome", "absence"),
    ("--advance", "settled"),
    ("--mode", "automatic"),
)
WITHIN = 170.0  # seconds
_BREATH = 1.0
_EXAMPLES = 10  # of broken promises

Manage = Callable[..., str]
Say = Callable[[str], None]


class TheyAreNotBack(SandboxError):
    """The service has not finished the shop's letters in time."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How the incident ended.

    Attributes:
        seconds: from the first poll to the last letter finished.
    """

    judgement: Judgement
    letters: int
    seconds: float

    @property
    def kept(self) -> bool:
        """Whether every promise was kept, and every letter is accounted for."""
        counts = self.judgement.counts()
        ended = counts["delivered"] + counts["parked"] + counts["closed_as_duplicate"]
        return self.judgement.clean and counts["letters"] == ended == self.letters

    def figures(self) -> dict[str, int | float]:
        """The figures, for --json."""
        return {**self.judgement.counts(), "seconds": round(self.seconds, 1)}

    def sentences(self) -> list[str]:
        """The figures in words, and the first broken promises."""
        counts = self.judgement.counts()
        ended = (
            f"{counts['delivered']} delivered, {counts['parked']} parked, {counts['closed_as_duplicate']} duplicates"
        )
        broken = ", ".join(f"{offence.value.replace('_', ' ')} {counts[offence]}" for offence in Offence)
        return [
            f"{counts['letters']} letters in {self.seconds:.0f} s: {ended}.",
            f"The judge, from the call log and the consumer's log: {broken}.",
            *(f"  {finding.sentence}" for finding in self.judgement.findings[:_EXAMPLES]),
        ]


class Incident:
    """One incident with its own queues; `run` tells it and has it judged.

    `manage` runs a command of manage.py and gives what it wrote to standard output.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *, manage: Manage, say: Say, seed: int) -> None:
        self._folder = folder
        self._environment = environment
        self._manage = manage
        self._say = say
        self._seed = seed
        self.name = f"shop-{seed:08x}"

    def run(self, letters: int) -> Summary:
        """The incident from the first event to the last letter.

        Raises:
            SandboxError: it did not come to its end; the message says where it stopped.
            Stopped: somebody asked the sandbox to stop meanwhile.
        """
        with Shop(
            self._folder, environment=self._environment, letters=letters, seed=self._seed, name=self.name
        ) as shop:
            self._let_die(shop)
            shop.deliver_twice()
            shop.mend()
            self._say("The consumer is mended. SQS will hand out one batch of the dead letters twice.")
            began = time.monotonic()
            self._watch(shop)
            self._await_finished(letters)
            seconds = time.monotonic() - began
            experiment = shop.experiment(max_attempts=MAX_ATTEMPTS, rate=RATE, burst=RATE)
            return Summary(shop.judged(experiment, books_of(self._states())), letters, seconds)

    def _let_die(self, shop: Shop) -> None:
        accounts = len({event.account for event in shop.events})
        self._say(f"A shop publishes {len(shop.events)} events of {accounts} accounts to {shop.origin};")
        self._say("its consumer is broken, and some of the events are such that nobody can process them.")
        shop.break_down()
        shop.publish()
        shop.await_dead()
        self._say(f"All of them are dead: {shop.dead()} letters in {shop.dlq}.")

    def _watch(self, shop: Shop) -> None:
        """Have the service watch the shop's dlq, with brakes that suit a demo."""
        options = [*POLICY, *BRAKES]
        words = " ".join(f"{name} {value}" for name, value in options)
        self._say(f"manage.py add_dlq {self.name} --url {shop.dlq_url} {words} --confirm")
        self._manage(
            "add_dlq", self.name, "--url", shop.dlq_url, *(word for option in options for word in option), "--confirm"
        )

    def _await_finished(self, letters: int) -> None:
        deadline, before = time.monotonic() + WITHIN, ""
        while True:
            told = self._status()
            counts = {state: number for state, number in told["letters"].items() if number}
            now = ", ".join(f"{number} {state}" for state, number in counts.items()) or "nothing captured yet"
            if now != before:
                self._say(f"  {now}")
                before = now
            if sum(counts.values()) >= letters and not told["unfinished"]:
                return
            heed()
            if time.monotonic() > deadline:
                raise TheyAreNotBack(f"After {WITHIN:g} s not every letter of {self.name} is finished: {now}.")
            time.sleep(_BREATH)

    def _states(self) -> dict[str, str]:
        """The state of every letter, by the message id under which it died, as the service tells it."""
        return dict(self._status("--letters")["states"])

    def _status(self, *options: str) -> dict[str, Any]:
        """What the service says of the shop's dlq."""
        told = json.loads(self._manage("redrive_status", self.name, "--json", *options))
        return dict(told["dlqs"][0])


def books_of(states: Mapping[str, str]) -> Books:
    """The service's books, from its letters' states."""

    def those(*wanted: str) -> frozenset[str]:
        return frozenset(name for name, state in states.items() if state in wanted)

    return Books(
        parked=those("parked"),
        discarded=those("discarded"),
        duplicates=those("duplicate"),
        open=those("captured", "waiting", "sending", "awaiting"),
    )
