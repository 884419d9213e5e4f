"""Statements that look for recent rows do not read old ones, and those that delete old rows do not read recent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import ApiToken
from reprocessing.store.api import calls
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.outcomes import acknowledgements, reports
from reprocessing.store.runs import run_list
from reprocessing.store.safety import redrive_loops
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Rows of each table, in at least 30 pages; and buffers that a statement may read.
ROWS: Final = 3_000
MOST: Final = 20

_REPORTS: Final[LiteralString] = """
INSERT INTO redrive_report (message_id, verdict, type, message, fingerprint, happened_at, received_at, digest)
SELECT 'm-' || n, 'failed', '', '', '', redrive_now(), redrive_now() - interval '1 hour', sha256(int8send(n))
  FROM generate_series(1, %(rows)s::bigint) n
"""
_HOURS: Final[LiteralString] = """
INSERT INTO redrive_hourly_count (dlq_id, hour, what, n)
SELECT %(dlq)s, date_trunc('hour', redrive_now()) - n * interval '1 hour', 'captured', 9
  FROM generate_series(3, %(rows)s::int) n
"""
_MINUTES: Final[LiteralString] = """
INSERT INTO redrive_run_minute (run_id, minute, sent)
SELECT %(run)s, date_trunc('minute', redrive_now()) - n * interval '1 minute', 9
  FROM generate_series(3, %(rows)s::int) n
"""
_GROUPS: Final[LiteralString] = """
INSERT INTO redrive_failure_group (dlq_id, fingerprint, cause, title, first_at, last_at, created_at)
SELECT %(dlq)s, sha256(int8send(n)), 'reported', 'Refused', redrive_now(), redrive_now(), redrive_now()
  FROM generate_series(1, %(rows)s::bigint) n
"""
_CALLS: Final[LiteralString] = """
INSERT INTO redrive_api_call (token_id, key, request_hash, made_at, status, answer)
SELECT %(token)s, 'key-' || n, sha256(int8send(n)), redrive_now(), 200, '' FROM generate_series(1, %(rows)s::bigint) n
"""


@pytest.mark.parametrize(
    ("rows", "read"),
    [
        (_REPORTS, lambda _: acknowledgements.has_open_outcomes()),
        (_REPORTS, lambda _: reports.unmatched_attempts()),
        (_REPORTS, lambda _: retention.delete_reports(history=86_400, limit=1_000)),
        (_HOURS, lambda _: redrive_loops.pause_looping_runs()),
        (_HOURS, lambda _: counters.delete_old_hours(history=365 * 86_400.0)),
        (_MINUTES, lambda stock: run_list.figures_of([stock.run.pk])),
        (_GROUPS, lambda _: retention.delete_groups(history=86_400, limit=1_000)),
        (_CALLS, lambda _: calls.delete_old(limit=1_000)),
    ],
    ids=["open outcomes", "unmatched reports", "old reports", "loops", "old hours", "runs", "old groups", "old calls"],
)
def test_other_rows_are_not_read(rows: LiteralString, read: Callable[[Stock], object]) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        stock.run.kind = "automatic"
        stock.run.save()
        token = ApiToken.objects.create(name="ci", token_hash=b"x", scopes=["messages:read"], added_by="ann")
        with connection.cursor() as cursor:
            values = {"dlq": stock.dlq.pk, "run": stock.run.pk, "token": token.pk, "rows": ROWS}
            cursor.execute(rows, values)
        with_statistics()
        with explained() as found:
            read(stock)
    assert found
    assert {one.name: one.buffers for one in found if one.buffers > MOST} == {}
