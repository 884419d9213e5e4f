"""A list of messages uses an index, however many messages there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.models import DeadLetter, Origin
from reprocessing.store.ordering.lanes import clock
from tests.reprocessing.admin.parking_lot.lot import dlq, person

pytestmark = [pytest.mark.django_db, pytest.mark.soak]


def _letters(origin: Origin, many: int, *, state: str, first: DeadLetter | None = None) -> None:
    DeadLetter.objects.bulk_create(
        DeadLetter(
            dlq=origin.dlq, origin=origin, target=origin.target, message_id=f"{origin.dlq.name}-{state}-{n}",
            state=state, body_hash=b"hash", size=2, died_at=clock(), finished_at=clock(), planned=True,
            sequence=f"{n:06}", key_hash=b"%d" % n, single=True, duplicate_of=first,
        )
        for n in range(many)
    )  # fmt: skip


@pytest.mark.parametrize("few", [0, 3])
@pytest.mark.parametrize("state", ["discarded", "duplicate"])
def test_few_that_were_let_go_are_found_among_many_that_were_delivered(state: str, few: int) -> None:
    origin, ann = dlq(), person("ann", "view_deadletter")
    _letters(origin, 2_000, state="delivered")
    _letters(origin, few, state=state, first=DeadLetter.objects.first() if state == "duplicate" else None)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE redrive_letter")
    with CaptureQueriesContext(connection) as asked:
        page = ann.get(f"/admin/reprocessing/deadletter/?dlq__id__exact={origin.dlq_id}&state__exact={state}")
    assert page.content.decode().count(f"{origin.dlq.name}-{state}-") >= few
    statements = [one["sql"] for one in asked.captured_queries if "ORDER BY" in one["sql"]]
    (listed,) = [one for one in statements if 'FROM "redrive_letter"' in one]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {listed}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert ("letters_that_were_let_go" in plan, "Seq Scan on redrive_letter" in plan) == (True, False)
