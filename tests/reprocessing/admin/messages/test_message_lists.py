from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.models import Letter, Source
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, person

pytestmark = [pytest.mark.django_db, pytest.mark.soak]


def _letters(source: Source, many: int, *, state: str, first: Letter | None = None) -> None:
    Letter.objects.bulk_create(
        Letter(
            dlq=source.dlq, source=source, target=source.target, message_id=f"{source.dlq.name}-{state}-{n}",
            state=state, body_hash=b"hash", size=2, first_sent_at=database_now(), finished_at=database_now(),
            planned=True,
            sequence=f"{n:06}", key_hash=b"%d" % n, single=True, duplicate_of=first,
        )
        for n in range(many)
    )  # fmt: skip


@pytest.mark.parametrize("few", [0, 3])
@pytest.mark.parametrize("state", ["discarded", "duplicate"])
def test_few_that_were_let_go_are_found_among_many_that_were_delivered(state: str, few: int) -> None:
    source, ann = dlq(), person("ann", "view_letter")
    _letters(source, 2_000, state="delivered")
    _letters(source, few, state=state, first=Letter.objects.first() if state == "duplicate" else None)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE redrive_letter")
    with CaptureQueriesContext(connection) as asked:
        page = ann.get(f"/admin/reprocessing/letter/?dlq__id__exact={source.dlq_id}&state__exact={state}")
    assert page.content.decode().count(f"{source.dlq.name}-{state}-") >= few
    statements = [one["sql"] for one in asked.captured_queries if "ORDER BY" in one["sql"]]
    listed = [one for one in statements if 'FROM "redrive_letter"' in one]
    assert len(listed) == (1 if few else 0)  # the counters say that there are none
    if not few:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {listed[0]}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert ("discarded_and_duplicates" in plan, "Seq Scan on redrive_letter" in plan) == (True, False)
