"""What the board says of one dlq, and how urgent that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reprocessing.domain.runs.forecast import in_words
from reprocessing.models.run import RunState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import Watch, Working

#: Letters of a run that are counted for a page that is asked for every few seconds.
MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Count:
    """A number, what it counts, and where the letters behind it are."""

    n: int
    what: str
    address: str


@dataclass(frozen=True, slots=True)
class Way:
    """Where a dlq's letters go back to, how fast they may, and what holds them; `alarming`: nothing goes.

    `waits_for`: what has to happen before the oldest of those that are sent is settled; empty: there is none.
    """

    name: str
    breaker: str
    why: str
    allowed: str
    unsettled: int
    address: str
    alarming: bool
    waits_for: str


@dataclass(frozen=True, slots=True)
class Card:
    """One dlq.

    Attributes:
        depth: what SQS said it holds, in words.
        left: until SQS drops the first copy of an unfinished letter; empty: it holds none. `soon`: within a day.
        under_way, parked: letters that are not finished; parked ones by reason.
        finished: what became of the others.
        causes: open groups with the most letters at rest; `more_causes`: how many there are beside them.
        in_sight: copies of captured letters among the messages that SQS shows.
        unplanned: captured letters that go nowhere until a person starts a run.
    """

    watch: Watch
    address: str
    depth: str
    asked_at: datetime | None
    oldest: str
    left: str
    soon: bool
    under_way: tuple[Count, ...]
    parked: tuple[Count, ...]
    finished: tuple[Count, ...]
    runs: tuple[Working, ...]
    ways: tuple[Way, ...]
    causes: tuple[Count, ...]
    more_causes: int = 0
    in_sight: int = 0
    unplanned: int = 0

    @property
    def paused(self) -> tuple[Working, ...]:
        """Runs that stand, with letters in them."""
        return tuple(one for one in self.runs if one.state == RunState.PAUSED and one.unfinished)

    @property
    def at_rest(self) -> int:
        """Unfinished letters that move when a person lets them; of more than `MOST` in one run, so many."""
        return self.unplanned + sum(min(one.unfinished, MOST) for one in self.paused)

    @property
    def waits_for_people(self) -> int:
        """Letters that are parked, or at rest."""
        return sum(one.n for one in self.parked) + self.at_rest

    @property
    def uncaptured(self) -> int:
        """Messages that SQS shows to everybody and nobody has captured, in a dlq that nothing captures by itself."""
        return dlq_status.uncaptured(self.watch, self.in_sight)

    @property
    def kept(self) -> str:
        """How long SQS keeps a message, in words."""
        return f"{in_words(self.watch.retention)} after it {'died' if self.watch.fifo else 'was sent first'}"

    @property
    def is_alarming(self) -> bool:
        """Nothing of it moves, or letters are about to be lost to SQS."""
        return bool(self.watch.stopped_at or self.watch.trouble or self.soon)

    @property
    def is_held_back(self) -> bool:
        """A breaker or a run of it does not let letters go."""
        return any(one.alarming for one in self.ways) or any(run.state == RunState.PAUSED for run in self.runs)

    @property
    def is_wary(self) -> bool:
        """Something of it is held back, or waits for people."""
        return self.is_held_back or self.waits_for_people > 0 or self.uncaptured > 0

    @property
    def urgency(self) -> tuple[bool, bool, int, str]:
        """What people look at first sorts first."""
        return (not self.is_alarming, not self.is_held_back, -self.waits_for_people - self.uncaptured, self.watch.name)
