"""An export of the audit log reads the entries of its period and its user, not the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, LiteralString

import pytest
from django.db import connection, transaction

from reprocessing.models import AuditEntry
from reprocessing.store.maintenance import audit_log
from reprocessing.store.maintenance.audit_log import LogFilter
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Entries that the filters leave out, in at least 240 pages; and buffers that all statements together may read.
ENTRIES: Final = 20_000
MOST: Final = 60

_ENTRIES: Final[LiteralString] = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT 'noted', -n, %s, 'bob', 'old', redrive_now() - interval '3 days' + n * interval '1 s', '{}', '{}'
  FROM generate_series(1, %s::int) n
"""


@pytest.fixture
def stock() -> Iterator[Stock]:
    """There are three entries before thousands of old ones, and three after them."""
    with nothing_is_vacuumed():
        stock = Stock()
        for days, numbers in ((9, (1, 2, 3)), (0, (4, 5, 6))):
            for number in numbers:
                at = database_now() - timedelta(days=days)
                AuditEntry.objects.create(act="noted", dlq=stock.dlq, by=f"ann{number}", reason=f"{number}", at=at)
            if days:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("SET LOCAL session_replication_role = replica")  # the letters are not there
                    cursor.execute(_ENTRIES, [stock.dlq.pk, ENTRIES])
        with_statistics()
        yield stock


@pytest.mark.parametrize("sees_all", [True, False], ids=["all dlqs", "one dlq"])
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((1, None, None), "456"), ((None, 5, None), "123"), ((10, 5, None), "123"), ((1, 0, "ann5"), "5"),
        ((2, 1, None), ""), ((None, None, "ann2"), "2"), ((None, None, "joan"), ""),
    ],
    ids=["since", "until", "both", "with a user", "an empty period", "a user", "no user"],
)  # fmt: skip
def test_only_matching_entries_are_read(
    stock: Stock, asked: tuple[int | None, int | None, str | None], found: str, *, sees_all: bool
) -> None:
    since, until, by = asked
    now = database_now()
    begin, end = (None if days is None else now - timedelta(days=days) for days in (since, until))
    seen = EVERY_DLQ if sees_all else VisibleDlqs((stock.dlq.pk,))
    with explained() as statements:
        entries = list(audit_log.log_entries(LogFilter(begin, end, by), seen=seen))
    assert "".join(entry.reason for entry in entries) == found
    assert sum(one.buffers for one in statements) <= MOST
