"""One worker and one beat on servers of their own, with letters flowing, under faults."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from redrive_service.sandbox.servers.process import RunningServer, Server
from redrive_service.sandbox.shop.calls import next_call_number
from tests.conditions import eventually
from tests.faults.fleet import Worker
from tests.proof.dependencies.flow import KINDS, Flow, Kind
from tests.proof.dependencies.own_servers import OwnServers
from tests.proof.dependencies.verdict import verdict

CONCURRENCY = 4
FINISHED_WITHIN = 300.0  # seconds after a fault: SQS hides what a lost answer carried, and a task may be late


def pass_seconds(seconds: float) -> None:
    end = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= end, within=seconds + 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the letters that were buried since `begin`."""

    letters: int
    repeats: int
    parked: int
    healed: float
    broken: tuple[str, ...]


@dataclass
class World:
    """Everything, inside a `with` block. The worker and beat that it begins with are those that it ends with."""

    folder: Path
    kinds: Sequence[Kind] = KINDS
    concurrency: int = CONCURRENCY
    flows: list[Flow] = field(default_factory=list)
    since: int = 0

    def __enter__(self) -> Self:
        with ExitStack() as unwinding:
            self.servers = unwinding.enter_context(OwnServers(self.folder))
            more = self.servers.environment()
            self.worker = Worker(self.folder, "worker", concurrency=self.concurrency, **more)
            unwinding.callback(self.worker.close)
            self.worker.await_ready()
            self.beat = RunningServer(Server(
                name="beat", log=self.folder / "beat.log", environment={**os.environ, **more},
                command=[sys.executable, "-m", "celery", "-A", "redrive_service", "beat", "--loglevel", "INFO"],
            ))  # fmt: skip
            unwinding.callback(self.beat.stop)
            self.flows = [unwinding.enter_context(Flow(self.servers, kind)) for kind in self.kinds]
            self._exit = unwinding.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def begin(self) -> None:
        self.since = next_call_number(self.servers.endpoint)
        self._before = sum(flow.buried for flow in self.flows)
        self._parked = self._count_parked()
        for flow in self.flows:
            flow.flow()

    def end(self, *, within: float = FINISHED_WITHIN) -> Outcome:
        for flow in self.flows:
            flow.rest()
        began = time.monotonic()
        broken = [*self._await_finished(within), *self._who_died()]
        healed = time.monotonic() - began
        verdicts = [verdict(flow, self.since) for flow in self.flows]
        return Outcome(
            letters=sum(flow.buried for flow in self.flows) - self._before,
            repeats=sum(one.repeats for one in verdicts),
            parked=self._count_parked() - self._parked,
            healed=healed,
            broken=(*broken, *(sentence for one in verdicts for sentence in one.broken)),
        )

    def _await_finished(self, within: float) -> list[str]:
        try:
            eventually(lambda: all(flow.is_finished() for flow in self.flows), within=within, every=0.5)
        except AssertionError:
            return [
                f"{flow.name} is not finished {within:g} s later: {flow.buried} buried, {dict(flow.states())}, "
                f"{flow.left()} left in the dlq, of which is known: {'; '.join(flow.copies())}"
                for flow in self.flows if not flow.is_finished()
            ]  # fmt: skip
        return []

    def _who_died(self) -> list[str]:
        died = {"worker": self.worker.process.poll(), "beat": 1 if self.beat.has_ended() else None}
        return [f"{name} has ended, with {status}" for name, status in died.items() if status is not None]

    def _count_parked(self) -> int:
        return sum(flow.states()["parked"] for flow in self.flows)
