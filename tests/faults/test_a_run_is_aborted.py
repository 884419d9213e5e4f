"""A run is aborted while eight worker processes replay it: nothing more is sent, and a later run finishes it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from reprocessing.models import Attempt, Letter, Run
from reprocessing.pipeline.runs import drain
from tests.conditions import eventually
from tests.faults import LONG, outage
from tests.faults.fleet import Beat, Worker
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import Witness

pytestmark = [*LONG, pytest.mark.alone, pytest.mark.timeout(300)]

LETTERS, KEYS, RATE = 3_000, 500, 200.0
WORKERS, SLICES = 4, 2  # eight processes
ENDS_WITHIN = 2.0
WHO: dict[str, Any] = {"by": "a test", "reason": "to see it end", "confirm": True}


def test_an_aborted_run_sends_nothing_after_two_seconds_and_what_it_left_is_finished_by_the_next_one(
    tmp_path: Path,
) -> None:
    witness = Witness()
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"}, target_fields={"rate": RATE})
    outage.bury(bench, range(LETTERS), keys=KEYS)
    bench.capture(seconds=60)
    with ExitStack() as stack:
        some = [Worker(tmp_path, f"worker-{number}", concurrency=SLICES) for number in range(WORKERS)]
        for one in some:
            stack.callback(one.close)
        for one in some:
            one.await_ready()
        stack.enter_context(Beat())
        run = drain.start_run(bench.dlq, name="the-first", asked_by="a test")
        outage.await_delivered(bench, LETTERS // 5, within=60)
        asked = time.time_ns() / 1e9
        call_command("abort_run", run.name, **WHO)
        aborted = time.time_ns() / 1e9
        eventually(lambda: time.time_ns() / 1e9 > aborted + ENDS_WITHIN + 3, within=20)
        sent = outage.sends(bench, witness)
        last = max(one.at for one in sent)
        assert last < aborted + ENDS_WITHIN
        assert LETTERS // 5 <= len(sent) < LETTERS
        states = Counter(Letter.objects.values_list("state", flat=True))
        assert states == {"delivered": len(sent), "waiting": LETTERS - len(sent)}
        assert not Attempt.objects.filter(closed_at=None).exists()
        assert Run.objects.get().state == "aborted"
        call_command("resume_redrive", bench.name, **WHO)
        drain.start_run(bench.dlq, name="the-next", asked_by="a test")
        outage.await_delivered(bench, LETTERS, within=90)
        eventually(lambda: bench.left() == 0, within=60, every=0.5)
    judgement = witness.judges(
        bench, identity="event", ordering="key", sequence="n", advance="accepted", max_attempts=1, rate=RATE, burst=RATE
    )
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), LETTERS)
    print(  # noqa: T201
        f"{len(sent)} letters had been sent; the last one {last - aborted:+.2f} s after the abort was done, which took"
        f" {aborted - asked:.2f} s"
    )
