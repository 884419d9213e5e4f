"""The stage: actors are threads, one of which moves at a time; the dice say which, and time is virtual."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.proof.simulation.interrupt import Interrupt

#: Seconds that any sleep takes: less is lost beside a date.
LEAST: Final = 0.0001
#: Seconds that a thread has for its end, which is at once but for a machine that is very busy.
_PATIENCE: Final = 60.0
#: A world that moves so often without coming to its end goes round in circles.
MOST_STEPS: Final = 60_000


class Crash(BaseException):
    """This actor is killed: nothing catches it, and nothing that it would still do on its way out takes place."""


class WorldIsStuck(AssertionError):
    """Nobody can move any more, or all move in circles."""


@dataclass(frozen=True, slots=True)
class Odds:
    crash: float = 0.0
    freeze: float = 0.0
    cut: float = 0.0
    unheard: float = 0.0  # of a commit: it is done, and its answer is lost
    sqs: float = 0.0


def _closed() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


class Actor:
    """One who moves: a worker of the service, the consumer, a person. Made once for many worlds."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.wake = 0.0
        self.blocked: Callable[[], bool] | None = None  # whether it still stands before a lock
        self.doomed = self.over = False
        self.mortal = True  # faults strike it
        self.is_out = False  # it has the turn, and did not give it back
        self.frozen_at_the_wire = False
        self._go = _closed()
        self._part: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def play(self, part: Callable[[], None], *, mortal: bool) -> None:
        """Begin with a part; it moves when its turn comes."""
        self.wake, self.blocked, self.doomed, self.over = self.stage.now, None, False, False
        self._part, self.mortal = part, mortal

    def move(self) -> None:
        self.is_out = True
        self._go.release()
        self.stage.back.acquire()  # whatever is raised from here leaves it out, and the stage of no more use
        self.is_out = False

    def leave(self) -> None:
        """Let others move: this thread goes on when it is chosen again."""
        self.stage.back.release()
        self._go.acquire()
        if self.doomed:
            raise Crash

    def dismiss(self) -> None:
        """End the thread; one that is in the middle of its part ends with the process."""
        if self.is_out or not self.over:
            return
        self._part = None
        self._go.release()
        self._thread.join(_PATIENCE)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _live(self) -> None:
        mine.actor = self
        while True:
            self._go.acquire()
            part = self._part
            if part is None:
                self.stage.bury()
                return
            try:
                part()
            except Crash:
                pass
            except BaseException as error:  # noqa: BLE001  the stage raises it where somebody sees it
                self.stage.trouble = error
            self.over = True
            self.stage.back.release()


class _Mine(threading.local):
    actor: Actor | None = None


mine: Final = _Mine()


@dataclass(slots=True)
class Stage:
    """Where actors move, and when.

    Attributes:
        dice: throws everything, in the order in which things happen.
        odds: of faults; none once the world heals.
        now: seconds.
        struck: faults that fired, by their names.
        tale: what happened, step by step.
        bury: closes the connection of the actor whose thread asks.
        interrupt: what is raised between two moves, and never inside one.
    """

    dice: Random = field(default_factory=Random)
    odds: Odds = field(default_factory=Odds)
    now: float = 0.0
    steps: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    tale: list[str] = field(default_factory=list)
    bury: Callable[[], None] = lambda: None
    trouble: BaseException | None = None
    locks_were_freed: bool = False
    longest_freeze: float = 20.0
    back: threading.Lock = field(default_factory=_closed)
    actors: list[Actor] = field(default_factory=list)
    interrupt: Interrupt = field(default_factory=Interrupt)

    def begin(self, seed: int, odds: Odds, now: float) -> None:
        self.dice, self.odds, self.steps, self.trouble = Random(seed), odds, 0, None
        self.struck, self.tale = Counter(), []
        self.now = now

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            self._let_all_move_now()
            self.now = self._next()

    def _let_all_move_now(self) -> None:
        while ready := [one for one in self.actors if not one.over and not one.blocked and one.wake <= self.now]:
            chosen = ready[0] if len(ready) == 1 else self.dice.choice(ready)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise WorldIsStuck(f"after {self.steps:,} steps it is not over")
            chosen.move()
            self.interrupt.let_through()
            if self.trouble is not None:
                raise self.trouble
            if self.locks_were_freed:
                self.free()

    def clear(self) -> None:
        """Everybody leaves; whoever is in the middle of something is killed.

        Where a move was broken off nobody moves any more: two would at a time.
        """
        self.odds, self.trouble = Odds(), None
        for actor in self.actors:
            while not actor.over and not any(one.is_out for one in self.actors):
                actor.doomed = True
                actor.move()

    def free(self) -> None:
        """Whoever stood before a lock that is free by now goes on as far as it gets; its thread is chosen later."""
        self.locks_were_freed = False
        for one in self.actors:
            if one.blocked is not None and not one.blocked():
                one.blocked = None

    def _next(self) -> float:
        waking = [one.wake for one in self.actors if not one.over and not one.blocked]
        if not waking:
            raise WorldIsStuck(
                f"nobody can move: {[one.name for one in self.actors if one.blocked]} stand before locks"
            )
        return max(self.now, min(waking))

    # -- for actors, from their own threads

    def point(self, name: str, *, seconds: float = 0.0) -> None:
        """A place at which others may move, for so long at least, and at which the actor may die or freeze."""
        actor = mine.actor
        if actor is None:
            return
        if actor.doomed:
            raise Crash
        self.tale.append(f"{self.now:.3f} {actor.name} {name}")
        actor.wake = self.now + seconds
        if actor.mortal:
            self._strike(actor, name)
        actor.leave()

    def _strike(self, actor: Actor, name: str) -> None:
        throw = self.dice.random()
        if throw < self.odds.crash:
            self.note("crash", name)
            actor.doomed = True
            raise Crash
        if throw < self.odds.crash + self.odds.freeze:
            self.note("freeze", name)
            actor.frozen_at_the_wire |= name.startswith("ask SendMessage")
            actor.wake += self.dice.uniform(0.5, self.longest_freeze)

    def note(self, fault: str, where: str) -> None:
        self.struck[fault] += 1
        self.tale.append(f"{self.now:.3f} ** {fault} at {where}")

    def sleep(self, seconds: float) -> None:
        """For an actor: let so much time go by."""
        actor = mine.actor
        if actor is None:
            raise RuntimeError("whoever sleeps on the stage is an actor")
        if actor.doomed:
            raise Crash
        actor.wake = max(actor.wake, self.now + max(seconds, LEAST))
        actor.leave()

    def monotonic(self) -> float:
        return self.now
