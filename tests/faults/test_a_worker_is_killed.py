"""A worker dies in the middle of a drain: another one finishes it, and no more than its intent groups is repeated."""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reprocessing.models import Attempt, DeadLetterQueue
from tests.conditions import eventually
from tests.faults import outage
from tests.faults.fleet import Beat, Worker
from tests.faults.orphans import Orphans
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.timeout(900)]

LETTERS, KEYS, KILLS = 5_000, 500, 10
FEWER, FEW = 1_500, 2
SLICES = 2  # of one worker at a time
POLICY = {"ordering_key": "attribute:key", "sequence": "attribute:n"}


@pytest.mark.long
def test_ten_workers_killed_one_after_another_in_one_drain_lose_and_reorder_nothing(tmp_path: Path) -> None:
    bench = Workbench(fields=POLICY)
    _bury(bench)
    dice = random.Random(20)
    with Beat():
        for number in range(KILLS):
            moment = (number + dice.random()) * LETTERS / (KILLS + 1)
            with closing(Worker(tmp_path, f"worker-{number}", concurrency=SLICES)) as worker:
                _await_attempts(bench, moment)
                worker.kill()
        assert outage.delivered(bench) < LETTERS
        with Worker(tmp_path, "the-last", concurrency=SLICES):
            outage.await_delivered(bench, LETTERS, within=180)
    _judge(bench, LETTERS, kills=KILLS)


@pytest.mark.long
@pytest.mark.parametrize("drains", [FEW, 10])
def test_the_lanes_of_a_killed_worker_are_leased_again_within_fifteen_seconds(tmp_path: Path, drains: int) -> None:
    """Several drains, in each of which one of two workers is killed at a random moment."""
    dice = random.Random(21)
    longest, orphaned = 0.0, 0
    with Beat(), Worker(tmp_path, "the-other", concurrency=SLICES):
        for number in range(drains):
            bench = Workbench(fields=POLICY)
            with Worker(tmp_path, f"worker-{number}", concurrency=SLICES) as worker, Orphans(bench) as orphans:
                _bury(bench, FEWER)
                _await_attempts(bench, dice.randrange(100, FEWER - 600))
                worker.kill()
                orphans.note(worker.process.pid)
                outage.await_delivered(bench, FEWER, within=120)
            _judge(bench, FEWER, kills=1)
            longest, orphaned = max(longest, *orphans.times, 0.0), orphaned + orphans.count
    assert orphaned > 0
    if drains > FEW:  # CI asserts no time: its machine may be busy
        assert longest < 15
    print(f"{orphaned} lanes were orphaned; the longest until one was leased again: {longest:.1f} s")  # noqa: T201


def _bury(bench: Workbench, letters: int = LETTERS) -> None:
    outage.bury(bench, range(letters), keys=KEYS)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(
        mode="automatic", next_poll_at=None, max_attempts=KILLS + 1  # as often as a letter may be on its way
    )  # fmt: skip


def _await_attempts(bench: Workbench, moment: float) -> None:
    eventually(lambda: Attempt.objects.filter(target=bench.target).count() >= moment, within=180, every=0.001)


def _judge(bench: Workbench, letters: int, *, kills: int) -> None:
    """By what the source took: everything arrived, in order; repeats are few and bear the same redrive id."""
    marks: dict[str, set[str]] = defaultdict(set)
    by_key: dict[str, list[int]] = defaultdict(list)
    arrived = bench.arrivals()
    for one in arrived:
        attributes: dict[str, Any] = one["attributes"]
        marks[attributes["event"]].add(attributes["RedriveId"].split(":")[0])
        by_key[attributes["key"]].append(int(attributes["n"]))
    assert len(marks) == letters
    assert {len(ids) for ids in marks.values()} == {1}
    assert len(arrived) - letters <= kills * SLICES * bench.conf.intent_size
    assert [key for key, numbers in by_key.items() if not all(a <= b for a, b in pairwise(numbers))] == []
