"""One command stops every send; another lets them go on, and nothing is lost, repeated or reordered by it."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.core.management import call_command

from reprocessing.models import Letter, Run
from tests.conditions import eventually
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.stories.scene import Witness, dead, drained, lettered

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS, STOPS_WITHIN = 160, 2.0
WHO: dict[str, Any] = {"by": "a test", "reason": "to see it stand still", "confirm": True}


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize(("delete_when", "everything"), [("terminal", True), ("terminal", False), ("captured", False)])
def test_a_drain_that_is_stopped_sends_nothing_and_is_finished_when_it_is_resumed(
    *, delete_when: str, everything: bool
) -> None:
    witness = Witness()
    bench = Workbench(fields={**KEYED, "delete_when": delete_when}, target_fields={"rate": 40.0, "burst": 10.0})
    letters = (lettered(f"{n}", key=f"k{n % 40}", n=str(n), event=str(n)) for n in range(LETTERS))
    dead(bench, bench.source_url, letters)
    what: dict[str, Any] = {"all": True} if everything else {}
    names = [] if everything else [bench.name]
    over = threading.Event()
    with elsewhere() as begin:
        work = begin(lambda: drained(bench, stop=over.is_set))
        try:
            eventually(lambda: len(_sends(bench, witness)) > LETTERS // 10, within=30)
            call_command("stop_redrive", *names, **what, **WHO)
            stopped = time.time_ns() / 1e9
            eventually(lambda: time.time_ns() / 1e9 > stopped + STOPS_WITHIN + 1, within=10)
            sends = _sends(bench, witness)
            assert len(sends) < LETTERS
            assert max(sends) < stopped + STOPS_WITHIN
            assert Run.objects.get().state == "running"
            call_command("resume_redrive", *names, **what, **WHO)
            tally = work.result(timeout=30)
        finally:
            over.set()
    assert (tally.delivered, tally.open, bench.left()) == (LETTERS, 0, 0)
    assert set(Letter.objects.values_list("attempts", flat=True)) == {1}
    judgement = witness.judges(
        bench, identity="event", ordering="key", sequence="n", advance="accepted", max_attempts=1, rate=40, burst=10
    )
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), LETTERS)


def _sends(bench: Workbench, witness: Witness) -> list[float]:
    """When the source took redriven letters, in seconds since the epoch."""
    return [
        call["at"]
        for call in witness.calls()
        if call["queue"] == bench.name
        for entry in call["sent"]
        if entry["accepted"] and "RedriveId" in entry["attributes"]
    ]
