"""A pause or an abort against an intent: what was not committed before is not sent after."""

from __future__ import annotations

import pytest
from django.db.models import Count

from reprocessing.models import Attempt, DeadLetter, Run
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import intend
from reprocessing.store.runs import run_transitions
from tests.conditions import eventually
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS, RATE = 40, 5.0


def _end(run: Run, deed: str) -> None:
    if deed == "a pause":
        run_transitions.pause(run.pk, by="anna", reason="the consumer is broken")
    else:
        run_transitions.abort(run, by="anna", reason="the consumer is broken", stop_dlq=False)


@pytest.mark.parametrize("deed", ["a pause", "an abort"])
def test_lanes_that_were_leased_before_send_nothing_after(deed: str) -> None:
    bench = Workbench()
    bench.bury("letter")
    run = bench.ready()
    (lane,) = lanes.lease("me", limit=1, lease=8)
    _end(run, deed)
    letter = DeadLetter.objects.get()
    assert intend([lane.lane_id], [lane.fence], [letter.pk], margin=2, hold=8) == []
    assert (bench.letter().state, bench.letter().attempts, bench.history()) == ("waiting", 0, [])


@pytest.mark.soak
def test_what_an_aborted_run_has_not_sent_waits_and_nothing_is_lost() -> None:
    bench = Workbench(target_fields={"rate": RATE, "burst": 1})
    for number in range(LETTERS):
        bench.bury(f"{number}")
    run = bench.ready()
    with elsewhere() as begin:
        replaying = begin(lambda: bench.replay(seconds=30))
        eventually(lambda: DeadLetter.objects.filter(state="delivered").count() >= 3, within=20)
        _end(run, "an abort")
        report = replaying.result(30)
    counts = dict(DeadLetter.objects.values_list("state").annotate(Count("id")))
    assert counts == {"delivered": report.taken, "waiting": LETTERS - report.taken}
    assert 3 <= report.taken < LETTERS
    assert not Attempt.objects.filter(closed_at=None).exists()
    assert len(bench.delivered()) == report.taken
