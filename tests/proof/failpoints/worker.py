"""A worker and its beat in one process: the bodies of the tasks, one after another, as Celery would call them."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery.app.task import Task
from django.db import close_old_connections

from reprocessing import tasks
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import send
from reprocessing.pipeline.replay.copy_deletion import CopyDeletion
from tests.proof.failpoints.cells import Cell
from tests.proof.failpoints.faults import Striker
from tests.proof.failpoints.trap import Trap

logger = logging.getLogger(__name__)

#: Seconds between two ticks of beat, and of idleness.
TICK, BREATH = 0.25, 0.02


@dataclass(frozen=True, slots=True)
class Arms:
    """What a worker meets: its cell's fault, at so manieth a passage of its point."""

    cell: Cell
    passage: int
    by_postgres: bool


class Worker:
    """One process. It begins when the folder has `begin`, unless it is armed, and ends when it has `stop`."""

    def __init__(self, folder: Path, arms: Arms | None) -> None:
        self._folder, self._arms = folder, arms
        self._sent: deque[tuple[Task[Any, Any], Sequence[Any]]] = deque()
        self._striker: Striker | None = None

    def live(self) -> None:
        send.DELETE_AFTER_GROUPS = 1  # trials have few letters
        self._carry_tasks()
        if self._arms:
            self._arm(self._arms)
        while not self._arms and not (self._folder / "begin").exists():
            time.sleep(BREATH)
        tick_at = 0.0
        while not (self._folder / "stop").exists():
            if time.monotonic() >= tick_at:
                tick_at = time.monotonic() + TICK
                self._do(tasks.tick, ())
            elif self._sent:
                self._do(*self._sent.popleft())
            else:
                time.sleep(BREATH)

    def _do(self, task: Callable[..., Any], args: Sequence[Any]) -> None:
        if self._striker:
            self._striker.heal()
        close_old_connections()
        try:
            task(*args)
        except Exception:
            logger.exception("A task failed in %d", os.getpid())
        finally:
            close_old_connections()
            if self._arms and (self._folder / "fired").exists():
                (self._folder / "outlived").touch()

    def _carry_tasks(self) -> None:
        """What is sent is done by this very process: which one does it, and whether it is lost, changes nothing."""
        sent = self._sent

        def keep(task: Task[Any, Any], args: Sequence[Any] = (), *_: object, **__: object) -> None:
            if (task, args) not in sent:
                sent.append((task, args))

        Task.apply_async = keep  # type: ignore[method-assign, assignment]  # it answers nobody

    def _arm(self, arms: Arms) -> None:
        point = arms.cell.point
        natural = arms.by_postgres and point.in_database
        self._striker = Striker(arms.cell.fault, self._folder, in_database=natural)
        if point.name == "swept, copies not deleted":
            _leave_copies_to_the_sweep()
        Trap(point, self._striker.strike, passage=arms.passage, folder=self._folder).set()


def _leave_copies_to_the_sweep() -> None:
    """As if whoever settled letters had died each time before it deleted their copies."""
    delete_copies.delete_from_dlqs = lambda *_, **__: None
    CopyDeletion.add = CopyDeletion.finish = lambda *_: None  # type: ignore[method-assign, assignment]  # as above
