"""A worker is asked to stop in the middle of a drain: it hands its lanes back, and another finishes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocessing.models import Attempt, Lane, Letter
from tests.conditions import eventually
from tests.faults.fleet import Beat, Worker
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import Witness, lettered, published

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(200)]

POLICY = {"ordering_key": "attribute:key", "sequence": "attribute:n", "mode": "automatic"}
LETTERS, KEYS = 3_000, 300


def test_a_worker_that_is_asked_to_stop_leaves_no_lane_leased_and_repeats_nothing(tmp_path: Path) -> None:
    witness = Witness()
    bench = Workbench(fields=POLICY, target_fields={"rate": 200.0})
    letters = (lettered(f"{n}", key=f"k{n % KEYS}", n=str(n), event=str(n)) for n in range(LETTERS))
    published(bench.sqs, bench.dlq_url, letters)
    with Beat(), Worker(tmp_path, "leaving") as leaving:
        eventually(lambda: Attempt.objects.count() > LETTERS // 10, within=60)
        leaving.ask_to_stop()
        assert leaving.process.wait(timeout=30) == 0
        assert Attempt.objects.count() < LETTERS
        assert (Lane.objects.filter(phase="leased").count(), Attempt.objects.filter(closed_at=None).count()) == (0, 0)
        with Worker(tmp_path, "staying"):
            eventually(lambda: Letter.objects.filter(state="delivered").count() == LETTERS, within=60)
    assert len(bench.arrivals()) == LETTERS
    assert not Attempt.objects.filter(outcome="unknown").exists()
    judgement = witness.judges(bench, identity="event", ordering="key", sequence="n", advance="accepted")
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), LETTERS)
