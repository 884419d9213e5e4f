"""Two people and one parked letter: whoever decides second is told what the first one has decided."""

from __future__ import annotations

import pytest
from django.db import transaction

from reprocessing.models import Review
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.race.abreast import elsewhere, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_who_decide_together_one_does() -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    with bench.refusing("letter", poison=True):
        bench.replay()
    letter = bench.letter().pk
    with elsewhere() as begin:
        with transaction.atomic():
            assert act_on_parked.discard([letter], by="anna", reason="of no use").done == (letter,)
            releasing = begin(lambda: act_on_parked.release([letter], by="ben", reason="it is"))
            waits_for_us()
        assert releasing.result(20).refused == {letter: "it is no longer parked: it is discarded"}
    assert (bench.letter().state, bench.lane().phase) == ("discarded", "idle")
    assert list(Review.objects.values_list("by", flat=True)) == ["anna"]
