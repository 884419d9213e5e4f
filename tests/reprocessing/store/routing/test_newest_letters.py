"""The newest letters of a DLQ are found by reading few rows, whatever other letters there are."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Letter, Source
from reprocessing.store.routing import routable_letters
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import with_statistics

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]
MOST: Final = 30

_LETTERS: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, state, planned, single, sequence,
                            body_hash, size, first_sent_at, captured_at, expires_at, finished_at)
SELECT gen_random_uuid(), %s, n::text, %s, %s, CASE WHEN n %% 2 = 0 THEN 'captured' ELSE 'discarded' END,
       n %% 2 = 0, true, lpad(n::text, 9, '0'), sha256(n::text::bytea), 100, redrive_now(), redrive_now(),
       redrive_now() + n * interval '1 s', CASE WHEN n %% 2 = 1 THEN redrive_now() + n * interval '1 s' END
  FROM generate_series(1, %s::int) n
"""


def seed(source: Source, letters: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_LETTERS, [source.dlq_id, source.pk, source.target_id, letters])


def test_the_newest_letters_cost_the_same_beside_many_others() -> None:
    mine, other = dlq("mine"), dlq("other")
    seed(mine, 10_000)
    kept = parked(mine)
    seed(other, 20_000)
    with_statistics()
    with explained() as found:
        ids = routable_letters.newest_ids(mine.dlq_id, MOST)
        every = routable_letters.newest_ids(None, MOST)
    newest = list(Letter.objects.filter(dlq=mine.dlq).order_by("-pk").values_list("pk", flat=True)[:MOST])
    assert ids == newest
    assert kept.pk in ids
    assert every == list(Letter.objects.order_by("-pk").values_list("pk", flat=True)[:MOST])
    with explained() as counted:
        assert routable_letters.count_captured(ids, since=kept.captured_at) == 1
    assert max(one.buffers for one in counted) < 10 * MOST
    assert {one.scanned for one in found} == {frozenset()}
    assert max(one.buffers for one in found) < 10 * MOST
