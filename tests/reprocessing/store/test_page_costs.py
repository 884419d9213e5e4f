"""What the dashboard and a run's page read grows with what they show, not with the history, backlog and other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import DeadLetterQueue, Lane, Letter, Run
from reprocessing.store.dlqs import dlq_status, message_counts
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountInHour
from reprocessing.store.notifications import stalled_runs
from reprocessing.store.ordering import lane_counts, stalled_lanes
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.replay import send_rates
from reprocessing.store.runs import progress
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, nothing_is_vacuumed, seed, with_statistics

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS: Final = 2_000
#: Buffers of a statement. The tables below have more pages, and the letters need three buffers each.
MOST: Final = 100

_HOURS: Final[LiteralString] = """
INSERT INTO redrive_hourly_count (dlq_id, hour, what, n)
SELECT %s, date_trunc('hour', redrive_now()) - h * interval '1 hour', what, 7
  FROM generate_series(0, 4000) h CROSS JOIN unnest(ARRAY['captured', 'delivered', 'failed']) what
"""
_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, run_id, phase, due_at)
SELECT %s, %s, int8send(n), %s, 'ready', redrive_now() FROM generate_series(1, 6000) n
"""


@pytest.fixture
def bench() -> Iterator[Workbench]:
    with nothing_is_vacuumed():
        yield Workbench()


def _write(statement: LiteralString, *values: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _day() -> Iterator[tuple[datetime, str]]:
    """Yield the last 24 hours with each event of `_HOURS`."""
    last = database_now().replace(minute=0, second=0, microsecond=0)
    for hours in range(24):
        yield from ((last - timedelta(hours=hours), what) for what in ("captured", "delivered", "failed"))


def _cost(read: Callable[[], object]) -> tuple[object, int]:
    """Return what a function returns, and the most buffers that one of its statements read."""
    with explained() as found:
        answer = read()
    return answer, max(one.buffers for one in found)


@pytest.mark.soak
def test_the_rate_of_a_dlq_is_measured_without_reading_letters(bench: Workbench) -> None:
    seed(bench, automatic_run(bench), 1, LETTERS)
    with_statistics()
    rates, buffers = _cost(lambda: send_rates.send_rates([bench.dlq.pk]))
    assert isinstance(rates, dict)
    assert rates[bench.dlq.pk] >= send_rates._MOST / send_rates.WINDOW
    # One for each attempt, and for dead index entries, which stay while another session has an older snapshot. To read
    # the letters would take three more for each.
    assert buffers <= 2 * send_rates._MOST + MOST


@pytest.mark.soak
@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_the_last_day_is_read_without_the_months_before(bench: Workbench, *, known: bool) -> None:
    _write(_HOURS, bench.dlq.pk)
    if known:
        with_statistics()
    trends, buffers = _cost(lambda: message_counts.trends(24))
    assert isinstance(trends, dict)
    assert trends[bench.dlq.pk].captured == 24 * 7
    hours, more = _cost(lambda: counters.counts_by_hour(24))
    assert hours == [CountInHour(hour, what, 7) for hour, what in sorted(_day())]
    assert max(buffers, more) <= MOST


@pytest.mark.soak
def test_visible_copies_are_counted_in_the_index(bench: Workbench) -> None:
    seed(bench, automatic_run(bench), 1, LETTERS)
    asked_at = database_now() + timedelta(days=1)  # the copies are visible again then
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(
        mode="manual", depth_visible=LETTERS, depth_at=asked_at, drained_through=None
    )
    _write("VACUUM ANALYZE redrive_dlq_copy")
    found, buffers = _cost(lambda: dlq_status.visible_copies(visibility=60, count_lag=0))
    assert found == {bench.dlq.pk: LETTERS - (LETTERS - 1) // 2}
    assert buffers <= MOST // 3  # the copies have more pages


@pytest.mark.soak
def test_held_letters_of_a_run_are_counted_without_the_lanes_of_other_runs(bench: Workbench) -> None:
    run = automatic_run(bench)
    other = Run.objects.create(name="other", dlq=bench.dlq, asked_by="a test")
    _write(_LANES, bench.dlq.pk, bench.source.pk, other.pk)
    seed(bench, run, 1, 4)
    with_statistics()
    counts, buffers = _cost(lambda: progress.count_letters(run.pk))
    assert isinstance(counts, progress.RunCounts)
    assert counts.waiting == counts.letters - counts.delivered - counts.presumed > 0
    assert buffers <= MOST


@pytest.mark.soak
def test_lanes_in_which_a_run_waits_behind_another_run_are_found_without_the_other_lanes(bench: Workbench) -> None:
    run = automatic_run(bench)
    other = Run.objects.create(name="other", dlq=bench.dlq, asked_by="a test", state="finished")
    _write(_LANES, bench.dlq.pk, bench.source.pk, other.pk)
    seed(bench, run, 1, 40)
    lane = Letter.objects.filter(run=run, state="waiting").earliest("pk").lane
    assert lane is not None
    Lane.objects.filter(pk=lane.pk).update(run=other, phase="ready", due_at=database_now())
    with_statistics()
    counts, buffers = _cost(lambda: lane_counts.lane_counts_of_run(run.pk, most=10_000))
    assert isinstance(counts, list)
    assert [(one.n, one.ahead_state) for one in counts if one.ahead == "other"] == [(1, "finished")]
    waits, more = _cost(lambda: stalled_runs.runs_that_are_blocked(long=0))
    assert isinstance(waits, list)
    assert [(one.run_id, one.target) for one in waits] == [(run.pk, "other")]
    stalled, most = _cost(lambda: stalled_lanes.find_stalled([bench.dlq.pk], long=0, lost=0))
    assert isinstance(stalled, list)
    assert [one.n for one in stalled if one.how == "blocked"] == [1]
    assert max(buffers, more, most) <= 40 * 9, (buffers, more, most)
