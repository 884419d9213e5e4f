"""Every point with every fault, again and again: what failed last comes first, then what was proved least often."""

from __future__ import annotations

import os
import shlex
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

import pytest

from tests.proof.failpoints.booths import Booth, booths
from tests.proof.failpoints.cells import CELLS
from tests.proof.ledger import Ledger

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.prove]

LAYER: Final = "failpoints"
#: Trials at a time, most of whose time is waiting.
BOOTHS: Final = int(os.environ.get("PROVE_BOOTHS", "3"))
#: How often one run tries a cell, and of how many cells before it goes on to others.
TIMES, FEW = 3, 50
_LOOKS_EVERY: Final = 0.5  # seconds between two looks for a Ctrl-C


class Run:
    """One run of the long form: a queue of trials, worked off by several booths."""

    def __init__(self, ledger: Ledger, is_time: Callable[[], bool]) -> None:
        self._ledger, self._is_time = ledger, is_time
        self._left = deque(_trials(ledger))
        self._guard = threading.Lock()
        self.tried = 0
        self.failed: list[str] = []
        self._is_over = False

    def through(self, some: Sequence[Booth]) -> None:
        """Have them all work. With Ctrl-C no trial begins any more, and those under way are ended."""
        with ThreadPoolExecutor(len(some)) as pool:
            try:
                working = {pool.submit(self.work, one) for one in some}
                while working:  # a wait without an end would sleep through a Ctrl-C that came just before it
                    ended, working = wait(working, timeout=_LOOKS_EVERY)
                    for done in ended:
                        done.result()
            except KeyboardInterrupt:
                self._is_over = True
                print("\nThe trials under way are ended, and count for nothing.", flush=True)  # noqa: T201  somebody waits
                for one in some:
                    one.end()
                raise

    def work(self, booth: Booth) -> None:
        while self._is_time():
            with self._guard:
                if self._is_over or not self._left:
                    return
                cell, repetition = self._left.popleft()
            told = booth.tries(cell, repetition)
            with self._guard:
                if not self._is_over:
                    self._note(cell, repetition, told["why"], told["figures"])

    def _note(self, cell: str, repetition: int, why: list[str], figures: dict[str, float]) -> None:
        self.tried += 1
        again = f"PROVE_CELL={shlex.quote(cell)} PROVE_REPETITION={repetition} make prove LAYER={LAYER}"
        told = " ".join(why)
        self._ledger.note(LAYER, cell, passed=not why, why=f"{told} Again: {again}" if why else "", **figures)
        if why:
            self.failed.append(f"{cell}: {told}\n  {again}")
        result = f"{'FAILED' if why else 'passed'} in {figures.get('seconds', 0):.1f} s"
        print(f"{self.tried} tried, {len(self._left)} left: {cell} ({repetition}) {result}", flush=True)  # noqa: T201


def _trials(ledger: Ledger) -> Iterator[tuple[str, int]]:
    if asked := os.environ.get("PROVE_CELL"):
        yield from ((one.name, int(os.environ.get("PROVE_REPETITION", "0"))) for one in CELLS if asked in one.name)
        return
    passed = ledger.tried(LAYER)
    cells = list(ledger.turns(LAYER, (one.name for one in CELLS)))
    for first in range(0, len(cells), FEW):
        for time in range(TIMES):
            yield from ((cell, passed.get(cell, 0) + time) for cell in cells[first : first + FEW])


def test_whatever_strikes_wherever_the_healthy_finish_every_letter(
    tmp_path: Path, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    run = Run(ledger, is_time)
    with booths(BOOTHS, tmp_path) as some:
        run.through(some)
    assert not run.failed, "\n".join(run.failed)
