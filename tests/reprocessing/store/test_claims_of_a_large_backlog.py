"""A batch of a standing run costs what its letters cost, whatever is captured beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, LiteralString

import pytest
from django.db import connection, transaction

from reprocessing.models import Letter
from reprocessing.store.runs import selection
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import standing_run, with_statistics, without_statistics

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Letters of a batch, and buffers that it may read for each: the letter, its entry of two indexes, and its lock.
BATCH: Final = 100
MOST_EACH: Final = 20

# Half of the letters have one key.
_CAPTURED: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, state, planned, ordering_key, key_hash,
                            single, sequence, body_hash, size, first_sent_at, captured_at, expires_at)
SELECT gen_random_uuid(), %s, n::text, %s, %s, 'captured', true, key, sha256(key::bytea), false, lpad(n::text, 9, '0'),
       sha256(n::text::bytea), 100, redrive_now(), redrive_now(), redrive_now() + interval '1 day'
  FROM (SELECT n, CASE WHEN n %% 2 = 0 THEN 'hot' ELSE n::text END AS key FROM generate_series(1, %s::int) n) letters
"""


@pytest.mark.parametrize("backlog", [1_000, 30_000])
@pytest.mark.parametrize("statistics", [with_statistics, without_statistics])
def test_a_batch_is_locked_by_reading_only_its_own_letters(backlog: int, statistics: Callable[[], None]) -> None:
    bench = Workbench()
    run = standing_run(bench)
    with connection.cursor() as cursor:
        cursor.execute(_CAPTURED, [bench.dlq.pk, bench.source.pk, bench.target.pk, backlog])
    statistics()
    batch = list(Letter.objects.order_by("sequence").values_list("id", flat=True)[:BATCH])
    with transaction.atomic(), explained() as found:
        assert sorted(selection.lock_free_letters(bench.dlq.pk, run.pk, batch)) == sorted(batch)
    (one,) = [one for one in found if "FOR NO KEY UPDATE" in one.text]
    assert one.buffers < BATCH * MOST_EACH
