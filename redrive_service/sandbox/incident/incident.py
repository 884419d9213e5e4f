"""The demo's incident: a shop's consumer fails all messages and is repaired, then the service redrives the messages.

During the redrive, the consumer fails a second time, so that the circuit breaker opens. The incident also shows waves,
ramp-up, and a rule that quarantines the messages of one account.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.incident.observed_brakes import ObservedBrakes
from redrive_service.sandbox.incident.scenario import BREAKS_AFTER, Scenario
from redrive_service.sandbox.judge import BreakerOpening, Judgement, Offence, ServiceRecords
from redrive_service.sandbox.shop.world import Shop
from redrive_service.sandbox.stopping import raise_if_stopped
from reprocessing.domain.lifecycle import STATE_NAMES

RATE = 200  # letters a second
MAX_ATTEMPTS = 3
COOLDOWN = 2.5  # seconds; longer than a send, so sends from before the opening have ended
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
# A failed wave does not pause the run, because the demo shows the breaker. The threshold is high, so that the retries
# of the poison messages do not open the breaker again.
BRAKES = (
    ("--ramp-from", "0.2"),
    ("--ramp-every", "1"),
    ("--wave-success", "0"),
    ("--breaker-threshold", "10"),
    ("--breaker-cooldown", f"{COOLDOWN:g}"),
    ("--breaker-closes-after", "1"),
)
WITHIN = 170.0  # max seconds in which no further message is finished
_PAUSE = 0.25  # seconds between two reads of the command's output
_REPORTS_EVERY = "0.25"  # seconds between two status reports of the service
_EXAMPLES = 10  # max broken promises that are shown
#: How the judge's line names each broken promise.
_OFFENCES = {
    Offence.LOST: "lost",
    Offence.DUPLICATE: "processed twice",
    Offence.REORDERED: "out of order",
    Offence.OVERLAP: "two of one account at once",
    Offence.OVER_RATE: "above the rate limit",
    Offence.OVER_ATTEMPTS: "above the max attempts",
    Offence.ALTERED: "altered",
    Offence.OVER_BREAKER: "sent while the breaker was open",
    Offence.OVER_WAVE: "sent before their wave",
    Offence.ASTRAY: "sent to a wrong target",
}

Say = Callable[[str], None]


class IncidentTimedOut(SandboxError):
    """The service has not finished another message of the shop for 170 s (`WITHIN`)."""


class StatusCommandEnded(SandboxError):
    """The command that reports the service's status has ended before all messages were finished."""


class RunningCommand(Protocol):
    """A command that runs in the background."""

    def log_since_start(self) -> str:
        """Return all output of the command since its start."""

    def has_ended(self) -> bool:
        """Return whether the command has ended."""

    def stop(self) -> None:
        """Stop the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The functions with which the incident runs commands of the service.

    Attributes:
        manage: runs a command of manage.py and returns its standard output.
        watch: starts a command of manage.py that runs until it is stopped.
    """

    manage: Callable[..., str]
    watch: Callable[..., RunningCommand]


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of an incident.

    Attributes:
        judgement: what the judge found: the end of each message, and errors of the redrive.
        letters: the number of messages that failed.
        seconds: from the registration of the DLQ to the last finished message.
        brakes: what was observed of the four mechanisms that limit a run: waves, ramp-up, rule, circuit breaker.
        demanded: whether all four mechanisms must have been seen, because the incident had enough messages.
    """

    judgement: Judgement
    letters: int
    seconds: float
    brakes: ObservedBrakes
    demanded: bool

    @property
    def kept(self) -> bool:
        """Return whether the redrive was correct: the judge found no error, all messages are finished, and so on.

        If the incident had enough messages, waves, ramp-up, rule and circuit breaker must also have been seen at work.
        """
        counts = self.judgement.counts()
        ended = counts["delivered"] + counts["parked"] + counts["closed_as_duplicate"]
        return self.judgement.clean and counts["letters"] == ended == self.letters and not self._missing()

    def figures(self) -> dict[str, int | float | list[int | None]]:
        """Return the figures of the incident by name, as --json prints them."""
        counts = self.judgement.counts()
        return {
            "messages": counts.pop("letters"),
            **counts,
            "opened": len(self.brakes.openings),
            "quarantined": self.brakes.quarantined,
            "waves": self.brakes.waves,
            "seconds": round(self.seconds, 1),
        }

    def sentences(self) -> list[str]:
        """Return sentences for the user: the figures of the incident, and the first ten errors that the judge found."""
        counts = self.judgement.counts()
        ended = (
            f"{counts['delivered']:,} delivered (processed by the consumer), {counts['parked']:,} parked, "
            f"{counts['closed_as_duplicate']:,} duplicate"
        )
        broken = ", ".join(f"{text} {counts[offence]}" for offence, text in _OFFENCES.items())
        found = "found no fault" if self.judgement.clean else "found faults"
        return [
            f"{counts['letters']:,} messages in {self.seconds:.0f} s: {ended}.",
            f"The judge read the call log and the consumer's log, and {found}: {broken}.",
            *(f"  {finding.sentence}" for finding in self.judgement.findings[:_EXAMPLES]),
            *(f"  Not seen at work: {name}." for name in self._missing()),
        ]

    def _missing(self) -> list[str]:
        return self.brakes.missing() if self.demanded else []


class Incident:
    """One incident with its own queues. `run` runs the incident and judges the redrive."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, service: Service, say: Say, seed: int) -> None:
        self._folder = folder
        self._environment = environment
        self._service = service
        self._say = say
        self._seed = seed
        self.name = f"shop-{seed:08x}"

    def run(self, letters: int, closing: ExitStack) -> Summary:
        """Run the incident until all messages are finished, and let the judge check the redrive.

        The shop's consumer continues to run until `closing` closes.

        Raises:
            SandboxError: the incident did not end. The error says which step did not end.
            Stopped: the user stopped the sandbox meanwhile.
        """
        shop = closing.enter_context(
            Shop(self._folder, environment=self._environment, letters=letters, seed=self._seed, name=self.name)
        )
        self._let_messages_fail(shop)
        shop.deliver_twice()
        shop.mend(handles=BREAKS_AFTER if shop.shows_brakes else None)
        self._say("The consumer is repaired. SQS will deliver one batch of the failed messages twice.")
        began = time.monotonic()
        self._add_dlq(shop)
        plot = Scenario(shop, dlq=self.name, manage=self._service.manage, say=self._say)
        self._await_finished(letters, plot)
        seconds = time.monotonic() - began
        experiment = shop.experiment(max_attempts=MAX_ATTEMPTS, rate=RATE, burst=RATE, cooldown=COOLDOWN)
        judgement = shop.judged(experiment, records_of(self._states(), plot.brakes.openings))
        return Summary(judgement, letters, seconds, plot.brakes, demanded=shop.shows_brakes)

    def _let_messages_fail(self, shop: Shop) -> None:
        accounts = len({event.account for event in shop.events})
        self._say(f"A shop sends {len(shop.events):,} messages of {accounts:,} accounts to the queue {shop.source}.")
        self._say("Its consumer is broken. Some messages are invalid: no consumer can process them.")
        shop.break_down()
        shop.publish()
        shop.await_dead()
        self._say(f"All messages failed: {shop.dead():,} messages are in the DLQ {shop.dlq}.")

    def _add_dlq(self, shop: Shop) -> None:
        """Register the shop's DLQ in the service, with short times that suit a demo."""
        options = [*POLICY, *PACE, *BRAKES]
        words = " ".join(f"{name} {value}" for name, value in options)
        self._say(f"manage.py add_dlq {self.name} --url {shop.dlq_url} {words} --confirm")
        self._service.manage(
            "add_dlq", self.name, "--url", shop.dlq_url, *(word for option in options for word in option), "--confirm"
        )

    def _await_finished(self, letters: int, plot: Scenario) -> None:
        deadline, before, finished = time.monotonic() + WITHIN, "", 0
        for report in self._status_reports():
            counts = {state: number for state, number in report["messages"].items() if number}
            now = (
                ", ".join(f"{number:,} {STATE_NAMES.get(state, state)}" for state, number in counts.items())
                or "0 captured"
            )
            if now != before:
                self._say(f"  {now}")
                before = now
            plot.go_on(report)
            captured, ended = sum(counts.values()), sum(counts.values()) - report["unfinished"]
            if captured >= letters and ended == captured:
                return
            if ended > finished:
                deadline, finished = time.monotonic() + WITHIN, ended
            if time.monotonic() > deadline:
                raise IncidentTimedOut(f"For {WITHIN:g} s no further message of {self.name} was finished: {now}.")

    def _status_reports(self) -> Iterator[dict[str, Any]]:
        """Yield each status report of `redrive_status --watch` about the shop's DLQ once.

        Raises:
            StatusCommandEnded: the command that writes the reports has ended.
            Stopped: the user stopped the sandbox.
        """
        watching = self._service.watch("redrive_status", self.name, "--json", "--watch", "--every", _REPORTS_EVERY)
        try:
            seen = 0
            while True:
                reports = [line for line in watching.log_since_start().split("\n")[:-1] if line.startswith("{")]
                for report in reports[seen:]:
                    yield dict(json.loads(report)["dlqs"][0])
                seen = len(reports)
                if watching.has_ended():
                    raise StatusCommandEnded(f"redrive_status --watch has ended: {watching.log_since_start()[-500:]}")
                raise_if_stopped()
                time.sleep(_PAUSE)
        finally:
            watching.stop()

    def _states(self) -> dict[str, str]:
        """Return the state that each message has in the service, by its message id in the DLQ."""
        report = json.loads(self._service.manage("redrive_status", self.name, "--json", "--messages"))
        return dict(report["dlqs"][0]["states"])


def records_of(states: Mapping[str, str], openings: Sequence[BreakerOpening] = ()) -> ServiceRecords:
    """Return the service's own records of messages and circuit breaker, which the judge compares with the logs.

    `states` has the state of each message, by message id. `openings` are the periods in which the breaker was not
    closed.
    """

    def those(*wanted: str) -> frozenset[str]:
        return frozenset(name for name, state in states.items() if state in wanted)

    return ServiceRecords(
        parked=those("parked"),
        discarded=those("discarded"),
        duplicates=those("duplicate"),
        open=those("captured", "waiting", "sending", "awaiting"),
        openings=tuple(openings),
    )
