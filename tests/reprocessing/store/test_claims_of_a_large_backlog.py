"""A batch costs what its letters cost, whatever is captured beside them, or waits behind them in their lane."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final, LiteralString

import pytest
from django.db import connection, transaction

from reprocessing.models import Lane, Letter
from reprocessing.store.notifications import stalled_runs
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.replay import intent
from reprocessing.store.runs import enlistment, selection
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import automatic_run, with_statistics, without_statistics

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Letters of a batch, and buffers that it may read for each: the letter, its entry of two indexes, and its lock.
BATCH: Final = 100
MOST_EACH: Final = 20
#: Buffers that a statement about one lane may read: it changes a letter and writes an attempt, with their indexes.
MOST_OF_ONE: Final = 400

# Half of the letters have one key.
_CAPTURED: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, state, planned, ordering_key, key_hash,
                            single, sequence, body_hash, size, first_sent_at, captured_at, expires_at)
SELECT gen_random_uuid(), %s, md5(n::text), %s, %s, 'captured', true, key, sha256(key::bytea), false,
       lpad(n::text, 21, '0'), sha256(n::text::bytea), 100, redrive_now(), redrive_now(),
       redrive_now() + interval '1 day'
  FROM (SELECT n, CASE WHEN n %% 2 = 0 THEN 'hot' ELSE n::text END AS key FROM generate_series(1, %s::int) n) letters
"""


@pytest.mark.parametrize("backlog", [1_000, 30_000])
@pytest.mark.parametrize("statistics", [with_statistics, without_statistics])
def test_a_batch_is_locked_by_reading_only_its_own_letters(backlog: int, statistics: Callable[[], None]) -> None:
    bench = Workbench()
    run = automatic_run(bench)
    with connection.cursor() as cursor:
        cursor.execute(_CAPTURED, [bench.dlq.pk, bench.source.pk, bench.target.pk, backlog])
    statistics()
    batch = list(Letter.objects.order_by("sequence").values_list("id", flat=True)[:BATCH])
    with transaction.atomic(), explained() as found:
        assert sorted(selection.lock_free_letters(bench.dlq.pk, run.pk, batch)) == sorted(batch)
    (one,) = [one for one in found if "FOR NO KEY UPDATE" in one.text]
    assert one.buffers < BATCH * MOST_EACH


@pytest.mark.parametrize("waiting", [100, 20_000])
def test_the_first_letter_of_a_long_lane_is_read_alone_by_a_planner_that_expects_one_letter(waiting: int) -> None:
    bench = Workbench()
    run = automatic_run(bench)
    with connection.cursor() as cursor:
        cursor.execute(_CAPTURED, [bench.dlq.pk, bench.source.pk, bench.target.pk, 2 * waiting])
    with_statistics()  # no letter has a lane yet
    hot = Letter.objects.filter(ordering_key="hot")
    lane = Lane.objects.create(
        dlq=bench.dlq, source=bench.source, key="hot", key_hash=hot[0].key_hash, run=run, phase="leased", fence=7,
        due_at=lanes.database_now() + timedelta(minutes=1),
    )  # fmt: skip
    new, first = hot.order_by("sequence")[:2]
    hot.exclude(pk=new.pk).update(state="waiting", lane=lane, run=run, target=bench.target)
    with explained() as found:
        (send,) = intent.intend([lane.pk], [7], [first.pk], margin=1, hold=1)
        lane_state.advance([lane.pk], [7])
    assert send.letter_id == first.pk
    assert max(one.buffers for one in found) < MOST_OF_ONE
    Lane.objects.filter(pk=lane.pk).update(phase="ready", due_at=lanes.database_now())
    with explained() as found:
        (stalled,) = stalled_runs.runs_that_send_nothing(long=0)
        with transaction.atomic():
            enlisted = enlistment.enlist_letters(bench.dlq.pk, run.pk, letters=[new.pk], free=True)
    assert (stalled.run_id, stalled.cause, enlisted.letters) == (run.pk, "not_taken", 1)
    assert max(one.buffers for one in found) < MOST_OF_ONE
