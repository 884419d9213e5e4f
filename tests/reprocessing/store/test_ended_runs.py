"""Ended runs without lanes cost an enlistment one index read each."""

from __future__ import annotations

from functools import partial
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Run
from reprocessing.store import rows
from reprocessing.store.runs import enlistment
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, nothing_is_vacuumed, with_statistics

pytestmark = pytest.mark.django_db(transaction=True)

#: Lanes of the run that goes on, and runs that have ended. All the lanes are in about 45 pages.
LANES: Final = 3_000
ENDED: Final = 5
#: Buffers: an index of three levels at most for each ended run, and as many in any case.
MOST: Final = 3 * ENDED + 15

_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, run_id, phase, due_at)
SELECT %s, %s, int8send(n), %s, 'ready', redrive_now() FROM generate_series(1, %s::int) n
"""


@pytest.mark.soak
def test_ended_runs_do_not_make_an_enlistment_read_the_lanes_of_the_running_one() -> None:
    """Of a table that knows one run, a planner expects that each run has all lanes."""
    with nothing_is_vacuumed():
        bench = Workbench()
        run = automatic_run(bench)
        for number in range(ENDED):
            Run.objects.create(name=f"ended-{number}", dlq=bench.dlq, state="finished", asked_by="a test")
        with connection.cursor() as cursor:
            cursor.execute(_LANES, [bench.dlq.pk, bench.source.pk, run.pk, LANES])
        with_statistics()
        with explained() as found:
            rows.in_transaction(partial(enlistment.enlist_letters, bench.dlq.pk, run.pk))
    assert {one.text[:60]: one.buffers for one in found if one.scanned or one.buffers > MOST} == {}
