"""Record waves, ramp-up, quarantined messages and changes of the circuit breaker from the service's status reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from redrive_service.sandbox.judge import BreakerOpening

DlqStatus = Mapping[str, Any]
"""The report of `redrive_status --json` about one DLQ with one target."""

WAVES = (1, 10, 100, None)


@dataclass(slots=True)
class ObservedBrakes:
    """What the status reports so far show of waves, ramp-up, rule and breaker. `look` reads the next report.

    Attributes:
        waves: the sizes of the run's waves, in their order. None is the size of the last wave: all remaining messages.
        rates: the rates that the ramp-up has allowed, messages per second, in their order.
        quarantined: the number of messages that a rule has quarantined.
        failed: the number of canaries that failed.
    """

    waves: list[int | None] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    quarantined: int = 0
    failed: int = 0
    _openings: list[BreakerOpening] = field(default_factory=list)
    _wave: int = 0
    _since: str = ""

    @property
    def openings(self) -> tuple[BreakerOpening, ...]:
        """Return the periods in which the breaker was not closed, according to the status reports."""
        return tuple(self._openings)

    @property
    def is_open(self) -> bool:
        """Return whether the breaker was open or half open in the last status report."""
        return bool(self._openings) and self._openings[-1].closed is None

    def missing(self) -> list[str]:
        """Return those of the mechanisms waves, ramp-up, rule and breaker that no status report has shown at work."""
        seen = {
            "waves of 1, 10, 100 and all": self._are_waves_in_order(),
            "a ramp that rises": any(before < after for before, after in pairwise(self.rates)),
            "a rule that quarantines": self.quarantined > 0,
            "a breaker that opens, and closes by itself": any(opening.closed is not None for opening in self._openings),
        }
        return [name for name, was_seen in seen.items() if not was_seen]

    def _are_waves_in_order(self) -> bool:
        """Return whether the run had all four waves, in the right order.

        On a busy machine, a wave may begin and end between two reports, so that no report shows it. The number of the
        last wave tells how many waves there were. The judge checks that one message was sent first.
        """
        seen = tuple(dict.fromkeys(self.waves))
        in_order = seen == tuple(size for size in WAVES if size in seen)
        return in_order and seen[-1:] == WAVES[-1:] and self._wave >= len(WAVES)

    def look(self, dlq: DlqStatus) -> Iterator[str]:
        """Record a status report. Yield a sentence for each change since the report before."""
        for run in dlq["runs"]:
            yield from self._look_at_waves(run)
        for target in dlq["targets"]:
            for breaker in target["breakers"]:
                yield from self._look_at_breaker(breaker)
                yield from self._look_at_ramp(breaker)
        yield from self._look_at_parked(dlq["parked"])

    def _look_at_waves(self, run: DlqStatus) -> Iterator[str]:
        wave = run["wave"]
        if wave is None or wave["no"] <= self._wave or None in self.waves:
            return  # after its last wave, a run counts waves from 1 again
        self._wave = wave["no"]
        self.waves.append(wave["size"])
        match wave["size"]:
            case None:
                yield "wave: the waves before have ended; all remaining messages may be sent."
            case 1:
                yield "wave: 1 message may be sent; all others wait for its outcome."
            case size:
                yield f"wave: the wave before has ended; now {size} messages may be sent."

    def _look_at_ramp(self, breaker: DlqStatus) -> Iterator[str]:
        rate = breaker["allowed_rate"]
        if breaker["state"] == "closed" and rate not in self.rates[-1:]:
            self.rates.append(rate)
            yield f"ramp: {rate:g} of {breaker['rate']:g} messages/s are allowed now ({breaker['ramp_reason']})."

    def _look_at_breaker(self, breaker: DlqStatus) -> Iterator[str]:
        if breaker["since"] == self._since:
            return
        self._since = breaker["since"]
        at = datetime.fromisoformat(breaker["since"]).timestamp()
        match breaker["state"]:
            case "closed":
                if self.is_open:
                    self._openings[-1] = replace(self._openings[-1], closed=at)
                    yield f"breaker: closed by itself, because {breaker['why']}."
            case "open":
                self.failed += self.is_open
                self._note_open(at)
                yield f"breaker: open, because {breaker['why']}. Nothing is sent before the next canary."
            case _:
                self._note_open(at)
                yield "breaker: half open; 1 message is sent as the canary, all others wait for its outcome."

    def _note_open(self, at: float) -> None:
        if not self.is_open:
            self._openings.append(BreakerOpening(opened=at))

    def _look_at_parked(self, parked: Mapping[str, int]) -> Iterator[str]:
        if parked.get("quarantined", 0) > self.quarantined:
            self.quarantined = parked["quarantined"]
            yield f"rule: {self.quarantined} messages are quarantined."
