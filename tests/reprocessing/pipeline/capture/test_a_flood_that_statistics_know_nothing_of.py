"""Statements read few rows a letter when PostgreSQL's statistics are of another DLQ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, LiteralString

import psycopg
import pytest
from django.db import connection, transaction

from reprocessing.models import Letter
from reprocessing.pipeline.maintenance import recover
from reprocessing.store import rows
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.stories.scene import lettered, published

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.timeout(200)]

LETTERS: Final = 1_000
#: Rows looked at and blocks read by one statement, for each letter of the flood.
MOST: Final = 600


class Scales:
    """Runs statements; before, explains each and notes what it reads."""

    def __init__(self) -> None:
        self.weights: Counter[str] = Counter()
        self._run = rows._execute

    def __call__(self, cursor: psycopg.Cursor[Any], statement: LiteralString, parameters: Mapping[str, Any]) -> None:
        with transaction.atomic():
            raw = connection.connection
            asked = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
            [[plan]] = raw.execute(asked, parameters, binary=False).fetchall()
            self.weights[" ".join(statement.split())[:120]] += _weight(plan[0]["Plan"], of_all=True)
            transaction.set_rollback(True)
        self._run(cursor, statement, parameters)


def _weight(node: dict[str, Any], *, of_all: bool = False) -> int:
    seen = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    blocks = node["Shared Hit Blocks"] + node["Shared Read Blocks"] if of_all else 0
    looked_at = sum(node.get(name, 0) for name in seen) * node["Actual Loops"]
    return int(blocks + looked_at) + sum(_weight(child) for child in node.get("Plans", ()))


TABLES: Final = ("redrive_letter", "redrive_lane", "redrive_dlq_copy", "redrive_attempt", "redrive_payload")


@pytest.fixture
def scales() -> Iterator[Scales]:
    _alter("SET (autovacuum_enabled = false)")
    yield Scales()
    _alter("RESET (autovacuum_enabled)")


def _alter(how: str) -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} {how}")


def test_statements_read_few_rows_a_letter_when_statistics_are_of_another_dlq(
    scales: Scales, monkeypatch: pytest.MonkeyPatch
) -> None:
    _flood()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    monkeypatch.setattr(rows, "_execute", scales)
    _flood()
    assert Letter.objects.filter(state="delivered").count() == 2 * LETTERS
    heavy = {statement: weight // LETTERS for statement, weight in scales.weights.items()}
    assert {statement: weight for statement, weight in heavy.items() if weight > MOST} == {}


def _flood() -> None:
    """Bring letters of a new DLQ, each on its own lane, until they are presumed delivered."""
    bench = Workbench(fields=KEYED, absence={"window": 0})
    published(bench.sqs, bench.dlq_url, (lettered(f"{n}", key=f"k{n}", n="1") for n in range(LETTERS)))
    bench.ready()
    bench.replay(seconds=60)
    recover.sweep_all(conf=bench.conf)
    bench.delivered()
    for _ in range(2):
        bench.promote()
        bench.capture()
    bench.promote()
    recover.sweep_all(conf=bench.conf)
