"""Two captures of one dlq at the same time: one has it, and every message becomes one letter."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from reprocessing.models import Custody, DeadLetter, Run
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from tests.race.abreast import elsewhere, together
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dlq_is_leased_to_one_of_those_who_ask_together() -> None:
    bench = Workbench()
    found = together([lambda: capture_lease.lease(bench.dlq.pk, lease=60, dirty=140)] * 4)
    assert sum(one is not None for one in found) == 1


def test_who_writes_of_a_dlq_keeps_nobody_from_capturing_it() -> None:
    """Whoever names a dlq in a new row locks its key while it commits."""
    bench = Workbench()
    with elsewhere() as begin, transaction.atomic():
        Run.objects.create(dlq=bench.dlq, name="a run", asked_by="a test")
        connection.check_constraints()  # as the commit does
        assert begin(lambda: schedule.due(now=lanes.clock(), limit=9)).result(10) == [bench.dlq.pk]
        assert begin(lambda: capture_lease.lease(bench.dlq.pk, lease=60, dirty=140)).result(10) is not None


def test_captures_abreast_write_every_message_once() -> None:
    bench = Workbench()
    for number in range(45):
        bench.bury(str(number))
    found = together([bench.capture] * 3)
    if sum(one.captured.letters for one in found) < 45:  # whoever came too late skipped it
        bench.capture()
    assert sorted(int(one) for one in bench.states()) == list(range(45))
    assert (DeadLetter.objects.count(), Custody.objects.count(), bench.left()) == (45, 45, 45)
    assert sum(one.captured.received > 0 for one in found) == 1
