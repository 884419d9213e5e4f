"""A stand-in for targets that answer one by one, and benches whose letters go to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from reprocessing.conf import Conf
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Taken
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.models import Lane, Target
from reprocessing.pipeline.replay import late_answers, send, slow_targets
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Workbench

URL = "https://hooks.example.com/letters"


@dataclass
class Endpoint:
    """A stand-in for the network. A letter is answered when `answer` returns its outcome."""

    answer: Callable[[str], Outcome | None] = lambda _: Taken()
    begun: list[str] = field(default_factory=list)
    most: int = 0
    _open: dict[int, str] = field(default_factory=dict)
    _told: list[tuple[int, Outcome]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, calls: Sequence[HttpCall], *, may_start: Callable[[], bool]) -> None:
        with self._lock:
            for call in calls:
                if may_start():
                    self.begun.append(call.body.decode())
                    self._open[call.attempt] = call.body.decode()
                else:
                    self._told.append((call.attempt, NotSent("it was too late")))
            self.most = max(self.most, len(self._open))

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        until = time.monotonic() + within
        while True:
            with self._lock:
                found = [(attempt, outcome) for attempt, body in self._open.items() if (outcome := self.answer(body))]
                for attempt, _ in found:
                    del self._open[attempt]
                told, self._told = self._told + found, []
            if told or time.monotonic() >= until:
                return told
            time.sleep(0.005)

    @property
    def open(self) -> int:
        with self._lock:
            return len(self._open) + len(self._told)

    def close(self) -> None:
        self._open.clear()


@pytest.fixture
def endpoint(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    ours = Endpoint()
    slow_targets.forget_streams()
    monkeypatch.setattr(slow_targets, "Posts", lambda *_, **__: ours)
    monkeypatch.setattr(send, "END_WAIT", 0.05)
    yield ours
    ours.answer = lambda _: Taken()
    assert late_answers.wait_for_all(10)
    slow_targets.forget_streams()


def bench_with(*, keys: int, letters: int, name: str = "", conf: Conf = BRISK) -> Workbench:
    bench = Workbench(fields=KEYED, conf=conf)
    Target.objects.filter(pk=bench.target.pk).update(kind="http", url=URL)
    for n in range(letters):
        for key in range(keys):
            bench.bury(f"{name}{key}-{n}", key=f"k-{key}", n=str(n))
    bench.ready()
    return bench


def hanging(endpoint: Endpoint, *, keys: int = 1) -> Workbench:
    """A bench whose turn is over, while its letters have no answer yet."""
    bench = bench_with(keys=keys, letters=1)
    endpoint.answer = lambda _: None
    bench.replay(0.2)
    return bench


def due(bench: Workbench) -> datetime:
    moment = Lane.objects.get(dlq=bench.dlq).due_at
    assert moment
    return moment


def delivered(bench: Workbench) -> set[str]:
    return {body for body, state in bench.states().items() if state == "delivered"}
