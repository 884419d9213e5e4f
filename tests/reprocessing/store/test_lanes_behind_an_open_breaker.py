"""Lanes behind an open breaker cost a lease nothing, however many they are."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Breaker, Wave
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, nothing_is_vacuumed, with_statistics

pytestmark = pytest.mark.django_db(transaction=True)

#: Lanes behind the open breaker, and buffers that the lease of other lanes may read: a few small tables and indexes.
LANES: Final = 3_000
MOST: Final = 60

_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, run_id, phase, due_at, breaker_id)
SELECT %s, %s, int8send(n), %s, 'ready', redrive_now(), %s FROM generate_series(1, %s::int) n
"""


@pytest.mark.soak
def test_a_lease_does_not_read_the_lanes_behind_an_open_breaker() -> None:
    with nothing_is_vacuumed():
        bench = Workbench()
        run = automatic_run(bench)
        Wave.objects.all().delete()
        breaker = Breaker.objects.get(target=bench.target)
        with connection.cursor() as cursor:
            cursor.execute(_LANES, [bench.dlq.pk, bench.source.pk, run.pk, breaker.pk, LANES])
        with_statistics()
        Breaker.objects.update(state="open", retry_at=lanes.database_now() + bench.conf.lease)
        with explained() as found:
            assert lanes.lease("a worker", limit=50, lease=60) == []
    assert {statement.name: statement.buffers for statement in found if statement.buffers > MOST} == {}
