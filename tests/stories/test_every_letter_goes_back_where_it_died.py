"""Several dlqs at a time, several sources of one dlq: every letter goes back where it died, or waits for a person."""

from __future__ import annotations

from functools import partial

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import Letter
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.stories.scene import Witness, another_source, dead, drained, lettered, published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.soak
def test_two_dlqs_are_drained_at_the_same_time_each_into_its_own_source() -> None:
    witness = Witness()
    benches = [Workbench(fields=KEYED), Workbench(fields=KEYED)]
    for which, bench in enumerate(benches):
        letters = (lettered(f"{which}:{n}", key=f"k{n % 5}", n=str(n), event=f"{which}:{n}") for n in range(60))
        dead(bench, bench.source_url, letters)
    tallies = together([partial(drained, bench, owner=bench.name) for bench in benches])
    assert [(tally.delivered, tally.open) for tally in tallies] == [(60, 0), (60, 0)]
    judgement = witness.judges(
        *benches, identity="event", ordering="key", sequence="n", advance="accepted", max_attempts=1
    )
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), 120)
    for which, bench in enumerate(benches):
        assert sorted(bench.delivered_bodies()) == sorted(f"{which}:{n}" for n in range(60))
        assert bench.left() == 0


def test_a_dlq_of_three_sources_gives_each_its_own_and_parks_what_it_does_not_know() -> None:
    witness = Witness()
    bench = Workbench()
    homes = {
        "first": bench.source_url,
        "second": another_source(bench).target.url,
        "third": another_source(bench).target.url,
        "stranger": bench.queue(f"{bench.name}-stranger"),
    }
    for name, url in homes.items():
        dead(bench, url, (lettered(f"{name} {number}") for number in range(12)))
    published(bench.sqs, bench.dlq_url, [lettered("sent here by hand")])
    tally = drained(bench)
    assert (tally.delivered, tally.parked, tally.open) == (36, 13, 0)
    judgement = witness.judges(bench, advance="accepted", strangers=frozenset({f"{bench.name}-stranger"}))
    assert (judgement.findings, judgement.counts()["delivered"], judgement.counts()["parked"]) == ((), 36, 13)
    for name in ("first", "second", "third"):
        arrived = sorted(one["Body"] for one in bench.delivered(homes[name]))
        assert arrived == sorted(f"{name} {number}" for number in range(12))
    assert bench.delivered(homes["stranger"]) == []
    parked = Letter.objects.filter(state="parked")
    assert set(parked.values_list("reason", flat=True)) == {ParkedReason.UNKNOWN_SOURCE}
    assert sorted(bytes(one.payload.body).decode() for one in parked) == sorted(
        ["sent here by hand", *(f"stranger {number}" for number in range(12))]
    )
