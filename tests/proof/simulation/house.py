"""What stands aside in a simulation, and what stands in its place: SQS, Redis, threads, and this process's clock."""

from __future__ import annotations

import sys
import time as real
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import pytest

from reprocessing.domain.errors import QueueUnreachable, RateLimitUnavailable
from reprocessing.domain.safety.token_bucket import Bucket, capacity
from reprocessing.gateways.aws import clients
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.sqs import QueueAddress, batch_requests, receive, received_handles
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.receivers import EMPTY_POLLS, Poll
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.pipeline.replay import copy_deletion, lease_keeper, send
from tests.proof.simulation.near import Near
from tests.proof.simulation.stage import Stage, mine

_MICROSECONDS = 1_000_000


class Buckets(Rates):
    """In the place of Redis: the same sums, in the stage's time; now and then nobody answers, or all is forgotten."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._buckets: dict[str, Bucket] = {}

    def begin(self) -> None:
        self._buckets.clear()

    def claim_wait(self, key: int | str, who: str, seconds: float) -> bool:
        return True

    def _ask(self, key: int | str, wanted: int, rate: float, burst: float | None) -> tuple[int, int, Bucket]:
        stage = self._stage
        stage.point("ask the rate")
        if stage.dice.random() < stage.odds.sqs / 2:
            stage.note("Redis gone", "the rate")
            raise RateLimitUnavailable("Redis did not say.")
        if stage.dice.random() < stage.odds.sqs / 4:
            stage.note("Redis flushed", "the rate")
            self._buckets.clear()
        now, most = round(stage.now * _MICROSECONDS), capacity(rate, burst)
        bucket = self._buckets.get(str(key)) or Bucket.cold(now, rate, most)
        there = bucket.filled(now, rate, most)
        self._buckets[str(key)], count = there.take(wanted)
        return count, int(there.tokens), self._buckets[str(key)]


class Listening:
    """In the place of several receivers: one, in the thread that asks, which hears silence as they would."""

    def __init__(  # noqa: PLR0913  as the other one
        self, address: QueueAddress, *, receivers: int, wait: int, visibility: int, seconds: float,
        stop: Callable[[], bool], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.has_run_dry, self.error = False, ""
        self._address, self._wait, self._visibility = address, wait, visibility
        self._seconds, self._stop, self._clock = seconds, stop, clock
        self._arrived = self._settled = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[Poll]:
        stage = _stage()
        end, quiet = stage.now + self._seconds, 0
        while quiet < EMPTY_POLLS and stage.now < end and not self._stop():
            hidden, asked = self._address.fifo and self._settled < self._arrived, self._clock()
            try:
                arrived = receive(self._address, wait=self._wait, visibility=self._visibility)
            except QueueUnreachable as error:
                self.error = str(error)
                return
            self._arrived += len(arrived)
            quiet = 0 if arrived else quiet + (not hidden)
            yield Poll(asked, arrived)
        self.has_run_dry = quiet >= EMPTY_POLLS

    def note_written(self) -> None:
        self._settled = self._arrived


def _stage() -> Stage:
    if mine.actor is None:
        raise RuntimeError("whoever listens is an actor")
    return mine.actor.stage


def meanwhile(work: Callable[[], Any], renew: Callable[[], None], *, every: float) -> Any:  # noqa: ANN401
    """In the place of a thread that asks while another one renews: requests here are short beside a lease."""
    return work()


def at_once(work: Callable[[], Any]) -> Future[Any]:
    """In the place of `run_beside`: the work is done at once, because a stage has only one thread."""
    done: Future[Any] = Future()
    done.set_result(work())
    return done


def one_by_one(act: Callable[[Any], Any], works: Sequence[Any], threads: int) -> list[Any]:
    return [act(work) for work in works]


def in_their_order(act: Callable[[Any], Any], works: Sequence[Any], threads: int, *, within: float) -> Iterator[Any]:
    return map(act, works)


@contextmanager
def set_up(stage: Stage, near: Near) -> Iterator[None]:
    clock = SimpleNamespace(
        monotonic=stage.monotonic, sleep=stage.sleep, clock_gettime=lambda _: stage.monotonic()
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("reprocessing.") and getattr(module, "time", None) is real:
                patch.setattr(module, "time", clock)
        patch.setattr(clients, "_clients", SimpleNamespace(get=lambda *_, **__: near, region=lambda: "eu-west-1"))
        patch.setattr(clients, "forget_clients", lambda: None)
        patch.setattr("reprocessing.gateways.aws.errors.forget_clients", lambda: None)
        patch.setattr(capture, "ReceiverPool", Listening)
        patch.setattr(capture, "LEASE", 8.0)  # worlds are short
        patch.setattr(lease_keeper, "run_while_renewing", meanwhile)
        patch.setattr(send, "run_while_renewing", meanwhile)
        patch.setattr(copy_deletion, "run_beside", at_once)
        patch.setattr(batch_requests, "run_in_parallel", one_by_one)
        patch.setattr(received_handles, "run_in_parallel", one_by_one)
        patch.setattr(resolve_outcomes, "run_as_completed", in_their_order)
        patch.setattr(follow_redrives, "run_as_completed", in_their_order)
        yield
