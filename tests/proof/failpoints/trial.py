"""One trial of a cell: a world, two workers, one fault, and everything finished by the healthy."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import psutil
from django.db import connections

from tests.conditions import eventually
from tests.conftest import empty
from tests.proof.failpoints.cells import Cell
from tests.proof.failpoints.consumer import Consumer
from tests.proof.failpoints.faults import Fault
from tests.proof.failpoints.verdict import broken, judged
from tests.proof.failpoints.worker import Arms, Worker
from tests.proof.failpoints.world import World
from tests.reprocessing.pipeline.bench import Clock
from tests.stories.scene import Witness

logger = logging.getLogger(__name__)

#: Seconds: of a lane's lease and of a capture's, of a slice, of a copy out of sight; and what waits for a world's end.
LEASE: Final = 4
SETTINGS: Final = {
    "LEASE": LEASE, "SLICE": 2, "INTENT_SIZE": 5, "LANES_PER_TASK": 6, "HINT_LIFE": 1, "HINT_LIFE_CAP": 2,
    "RECEIVE_VISIBILITY": 5, "COUNT_LAG": 0, "LONG_POLL": 0, "RECEIVERS": 2,
}  # fmt: skip
_FIRES_WITHIN, _ENDS_WITHIN = 30.0, 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a trial came to.

    Attributes:
        why: every broken promise, in a sentence; none: it passed.
        figures: what there is to add up.
    """

    why: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        return asdict(self)


class NotSeen(Exception):
    """What the trial waited for was not seen."""


class Trial:
    """One cell, once. `repetition` decides everything that is left open: shape, passage, letters, moments.

    With `hurry` there are fewer letters, and the database's clock is moved past the lease of a worker that was killed,
    while nobody else works.
    """

    def __init__(self, cell: Cell, repetition: int, *, hurry: bool) -> None:
        self._cell, self._few, self._hurry = cell, hurry, hurry and cell.fault is Fault.KILL
        self._dice = Random(f"{cell.name}/{repetition}")
        shapes = cell.point.shapes
        self._shape = shapes[repetition % len(shapes)]
        passage = 1 + (repetition + repetition // len(shapes)) % cell.point.most  # with each shape in time each passage
        self._arms = Arms(cell, passage, by_postgres=repetition % 2 == 1)
        self._pids: list[int] = []
        self._ended: dict[int, int] = {}

    def run(self) -> Outcome:
        began = time.monotonic()
        with ExitStack() as unwinding:
            self._folder = Path(unwinding.enter_context(tempfile.TemporaryDirectory(prefix="failpoint-")))
            empty()
            witness, world = Witness(), World(self._shape, self._dice, few=self._few)
            unwinding.callback(world.close)
            unwinding.callback(self._bury)
            if self._hurry:
                unwinding.callback(Clock().restore)
            connections.close_all()  # nothing of this process goes into its children
            self._armed, _ = self._start(self._arms), self._start(None)
            with Consumer(world.source_url, world.failures) as consumer:
                why = [*self._strike(), *self._finish(world)]
            calls = list(witness.calls())
            judgement = judged(world, calls, consumer.log)
            why += broken(self._cell, world, calls, judgement)
        counts = judgement.counts()
        figures = {"faults": 1.0, "seconds": time.monotonic() - began}
        figures |= {name: float(counts[name]) for name in ("letters", "sends", "returns", "parked", "swallowed")}
        figures["repeated letters"] = float(counts["duplicates"])
        said = f"{self._shape}, passage {self._arms.passage}"
        return Outcome(why=[f"{one} ({said})" for one in why], figures=figures)

    def _strike(self) -> list[str]:
        """Have the fault happen; what was not as it should be."""
        try:
            first = "fired" if self._hurry or self._cell.point.alone else "passed"
            self._await("met" if self._cell.fault is Fault.REDIS else first, _FIRES_WITHIN)
            if self._hurry:
                self._await_death()
                Clock().advance(LEASE + 1)
            (self._folder / "begin").touch()
            self._await("fired", _FIRES_WITHIN)
            match self._cell.fault:
                case Fault.KILL:
                    self._await_death()
                case Fault.STOP:
                    self._thaw()
                    self._await("outlived", _FIRES_WITHIN)
                case _:
                    self._await("met", 10)
                    self._await("outlived", _FIRES_WITHIN)
        except NotSeen as error:
            (self._folder / "begin").touch()
            return [str(error)]
        return []

    def _await(self, name: str, within: float) -> None:
        try:
            eventually((self._folder / name).exists, within=within)
        except AssertionError:
            raise NotSeen(f"{self._cell.name}: the fault never fired ({name} was not seen in {within:g} s)") from None

    def _await_death(self) -> None:
        eventually(lambda: self._has_ended(self._armed), within=10)
        if self._ended[self._armed] != -signal.SIGKILL:
            raise NotSeen(f"the armed process ended with {self._ended[self._armed]}")

    def _thaw(self) -> None:
        armed = psutil.Process(self._armed)
        eventually(lambda: armed.status() == psutil.STATUS_STOPPED, within=5)
        thaw_at = time.monotonic() + LEASE + self._dice.uniform(0.0, 1.5)  # its heir is in the middle of it, or through
        eventually(lambda: time.monotonic() > thaw_at, within=2 * LEASE)
        os.kill(self._armed, signal.SIGCONT)

    def _finish(self, world: World) -> list[str]:
        """Wait until everything is finished, and then for the workers; what was not as it should be."""
        why = []
        try:
            eventually(world.is_finished, within=_ENDS_WITHIN, every=0.1)
        except AssertionError:
            why.append(f"not finished within {_ENDS_WITHIN:g} s: {world.told()}")
        (self._folder / "stop").touch()
        for pid in self._pids:
            try:
                eventually(lambda pid=pid: self._has_ended(pid), within=10)  # type: ignore[misc]  # bound at once
            except AssertionError:
                why.append("a worker did not end when it was told to")
        healthy = [self._ended.get(pid) for pid in self._pids if (pid, self._cell.fault) != (self._armed, Fault.KILL)]
        if any(healthy):
            why.append(f"workers ended with {healthy}")
        if not world.is_finished() and not why:
            why.append(f"what was finished is so no more: {world.told()}")
        return why

    def _start(self, arms: Arms | None) -> int:
        pid = os.fork()
        if not pid:
            _live(Worker(self._folder, arms).live)
        self._pids.append(pid)
        return pid

    def _has_ended(self, pid: int) -> bool:
        if pid not in self._ended:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._ended[pid] = os.waitstatus_to_exitcode(status)
        return pid in self._ended

    def _bury(self) -> None:
        for pid in self._pids:
            if not self._has_ended(pid):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _live(life: Callable[[], None]) -> None:
    status = 1
    try:
        life()
        status = 0
    except BaseException:
        logger.exception("A worker ended")
    finally:
        os._exit(status)
