"""A list with a filter or a search reads the few rows that match, not the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, LiteralString

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Func, TextField, Value
from django.test import Client
from django.test.utils import CaptureQueriesContext

from reprocessing.admin.dlqs.dlq_form import DlqForm
from reprocessing.admin.messages.records import Attempts
from reprocessing.admin.rules.rule_form import last_change
from reprocessing.domain.message.identity import key_hash
from reprocessing.models import Attempt, AuditEntry, Lane, Report
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ
from reprocessing.store.routing import rule_changes
from reprocessing.store.search import filter_conditions
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

#: Rows of each table, in at least 70 pages; and buffers that a statement may read.
ROWS: Final = 5_000
MOST: Final = 30

_ENTRIES: Final[LiteralString] = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT 'noted', %(letter)s, %(dlq)s, 'bob', 'why', redrive_now() - (%(rows)s - n) * interval '1 second', '{}', '{}'
  FROM generate_series(1, %(rows)s::int) n
"""
_REPORTS: Final[LiteralString] = """
INSERT INTO redrive_report (message_id, verdict, type, message, fingerprint, happened_at, received_at, digest)
SELECT 'm-' || n, 'delivered', '', '', 'f-' || n %% 5, redrive_now(), redrive_now(), sha256(int8send(n))
  FROM generate_series(1, %(rows)s::bigint) n
"""
_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, key)
SELECT %(dlq)s, %(source)s, sha256(convert_to('k-' || n, 'UTF8')), 'k-' || n
  FROM generate_series(1, %(rows)s::int) n
"""


@pytest.fixture
def stock() -> Iterator[Stock]:
    """The oldest row of each table is rare; then come thousands of equal rows."""
    with nothing_is_vacuumed():
        stock = Stock()
        AuditEntry.objects.create(act="rotated", by="cid, approved by ann", reason="rare")
        rule_changes.save_rule("rare", {"action": "hold", "conditions": []}, by="dan", reason="first")
        AuditEntry.objects.create(act="changed", dlq=stock.dlq, by="eve", reason="second")
        Report.objects.create(
            message_id="rare", verdict="failed", fingerprint="rare print", happened_at=database_now(),
            received_at=database_now(), digest=b"rare",
        )  # fmt: skip
        rare = Lane.objects.create(dlq=stock.dlq, source=stock.source, key="rare", key_hash=key_hash("rare"))
        Lane.objects.filter(pk=rare.pk).update(phase="held")
        values = {
            "dlq": stock.dlq.pk, "source": stock.source.pk, "letter": stock.letter.pk, "rows": ROWS,
        }  # fmt: skip
        with connection.cursor() as cursor:
            for statement in (_ENTRIES, _REPORTS, _LANES):
                cursor.execute(statement, values)
        with_statistics()
        yield stock


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("auditentry/?act__exact=rotated", 1),
        ("auditentry/?act__exact=shredded", 0),
        ("auditentry/?q=ann", 1),
        ("auditentry/?q=nobody", 0),
        ("report/?verdict__exact=failed", 1),
        ("report/?verdict__exact=retrying", 0),
        ("report/?q=rare", 1),
        ('report/?q="rare print"', 1),
        ("report/?q=nothing", 0),
        ("lane/?q=rare", 1),
        ("lane/?q=nothing", 0),
        ("lane/?phase__exact=held", 1),
        ("lane/?phase__exact=ready", 0),
    ],
)
def test_a_list_does_not_read_rows_that_its_filter_leaves_out(
    stock: Stock, client: Client, address: str, found: int
) -> None:
    client.force_login(User.objects.create_superuser("root"))
    with explained() as statements:
        page = client.get(f"/admin/reprocessing/{address}")
    assert len(page.context["cl"].result_list) == page.context["cl"].result_count == found
    assert {one.text: one.buffers for one in statements if one.buffers > MOST} == {}


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_frequent_fingerprint_is_found_from_the_newest_report(stock: Stock, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    with explained() as statements:
        page = client.get("/admin/reprocessing/report/?q=f-3")
    newest = Report.objects.filter(fingerprint="f-3").order_by("-pk")[:50]
    assert list(page.context["cl"].result_list) == list(newest)
    assert [one.text for one in statements if one.buffers > ROWS / 5 * 2] == []


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_the_last_change_of_settings_is_found_without_entries_about_messages(stock: Stock) -> None:
    form = DlqForm(EVERY_DLQ, None, stock.dlq, {}, reveals=True)
    with explained() as statements:
        assert [last_change(EVERY_DLQ), form.last()] == ['dan ("first").', 'eve ("second").']
    assert {one.text: one.buffers for one in statements if one.buffers > MOST} == {}


@pytest.mark.django_db
def test_a_list_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ann, source = person("ann", "view_attempt"), dlq()
    parked(source)
    assert "1 attempt<" in ann.get("/admin/reprocessing/attempt/").content.decode()
    wait = Func(Value(0.2), function="pg_sleep", output_field=TextField())
    monkeypatch.setattr(filter_conditions, "_SEARCH_TIMEOUT_MS", 20)
    monkeypatch.setattr(Attempts, "get_queryset", lambda *_: Attempt.objects.annotate(wait=wait))
    page = ann.get("/admin/reprocessing/attempt/?outcome__exact=returned").content.decode()
    assert "The list took longer than 5 seconds and was stopped" in page
    assert "at least 0 attempts" in page


@pytest.mark.django_db
def test_a_list_on_one_page_is_not_counted_again() -> None:
    ann, source = person("ann", "view_attempt"), dlq()
    parked(source)
    with CaptureQueriesContext(connection) as asked:
        page = ann.get("/admin/reprocessing/attempt/")
    assert page.context["cl"].result_count == 1
    assert [one["sql"] for one in asked if "COUNT(" in one["sql"]] == []
