"""A FIFO queue swallows what a killed worker's heir sends again: its consumer sees each letter once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.faults.fleet import ROOT, environment
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.alone, pytest.mark.long]

KILLS = 50
POLICY = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}


class Doomed:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.doomed"], cwd=ROOT, env=environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def turn(self) -> int:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def doomed() -> Iterator[Doomed]:
    one = Doomed()
    yield one
    one.close()


def test_fifty_kills_between_send_and_settlement_give_the_consumer_no_letter_twice(
    doomed: Doomed, clock: Clock
) -> None:
    bench = Workbench(fifo=True, fields=POLICY)
    consumed: Counter[str] = Counter()
    for number in range(KILLS):
        for place in range(2):
            bench.bury(f"{number}-{place}", key=f"g-{number}")
        bench.ready()
        assert doomed.turn() == -signal.SIGKILL
        consumed.update(one["Body"] for one in bench.delivered())
        assert consumed[f"{number}-0"] == 1  # the kill came after the send
        clock.advance(bench.conf.lease.total_seconds() + 1)
        bench.replay()
        consumed.update(one["Body"] for one in bench.delivered())
    assert consumed == Counter(f"{number}-{place}" for number in range(KILLS) for place in range(2))
    assert set(bench.states().values()) == {"delivered"}
    assert Counter(outcome for _, outcome, _ in bench.history()) == {"unknown": KILLS, "accepted": 2 * KILLS}
