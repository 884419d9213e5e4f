"""The lanes that a killed worker left leased, and how long it took until each was leased again."""

from __future__ import annotations

import time

import psutil

from reprocessing.models import Lane
from tests.beside import Beside
from tests.reprocessing.pipeline.bench import Workbench


class Orphans(Beside):
    """Watches them. `times`: seconds, of each that was leased again; `count`: how many there were."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__("orphans")
        self.count, self.times = 0, list[float]()
        self._dlq = bench.dlq.pk
        self._left: dict[tuple[int, int], float] = {}

    def note(self, parent: int) -> None:
        """The worker with this process id was killed just now, and its children with it."""
        killed = time.monotonic()
        leased = Lane.objects.filter(phase="leased", dlq=self._dlq).values_list("id", "fence", "owner")
        owners = {(lane, fence): int(owner.split(":")[1]) for lane, fence, owner in leased}
        orphaned = {one: killed for one, pid in owners.items() if pid == parent or _is_dead(pid)}
        self.count = len(orphaned)
        self._left.update(orphaned)

    def go_on(self) -> None:
        while not self.over.wait(0.05):
            now = set(Lane.objects.filter(phase="leased", dlq=self._dlq).values_list("id", "fence"))
            for one in [one for one in list(self._left) if one not in now]:
                self.times.append(time.monotonic() - self._left.pop(one))


def _is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
