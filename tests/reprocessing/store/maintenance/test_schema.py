from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import CheckConstraint

from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.models import Attempt, Letter
from reprocessing.pipeline.maintenance.doctor import database
from reprocessing.store.maintenance import schema

pytestmark = pytest.mark.django_db

CHECK = next(constraint.name for constraint in Letter._meta.constraints if isinstance(constraint, CheckConstraint))
INDEX = Attempt._meta.indexes[0].name


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.soak
def test_nothing_is_missing_in_a_complete_schema() -> None:
    assert schema.missing_objects() == []


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("DROP TABLE redrive_parking_queue_message", ["table redrive_parking_queue_message"]),
        (
            "ALTER TABLE redrive_parking_queue_message RENAME COLUMN last_error TO gone",
            ["column redrive_parking_queue_message.last_error"],
        ),
        ("DROP TRIGGER payloads_never_change ON redrive_payload", ["trigger payloads_never_change"]),
        ("ALTER TABLE redrive_payload DISABLE TRIGGER payloads_never_change", ["trigger payloads_never_change"]),
        ("DROP FUNCTION redrive_now()", ["function redrive_now"]),
        ("DROP SEQUENCE redrive_fence", ["sequence redrive_fence"]),
        (f'ALTER TABLE redrive_letter DROP CONSTRAINT "{CHECK}"', [f"constraint {CHECK} or index {CHECK}"]),
        (f'DROP INDEX "{INDEX}"', [f"index {INDEX}"]),
    ],
)
def test_dropped_and_disabled_parts_are_named(statement: str, missing: list[str]) -> None:
    run(statement)
    assert schema.missing_objects() == missing


def test_the_doctor_reports_a_dropped_table_as_its_only_finding() -> None:
    run("DROP TABLE redrive_parking_queue_message")
    (finding,) = database.findings()
    assert (finding.severity, finding.what) == (
        FindingSeverity.ERROR,
        "Migrations are recorded as applied, but these objects are missing: table redrive_parking_queue_message.",
    )


_UNINDEXED_REFERENCES = """
SELECT c.conrelid::regclass || '.' || a.attname
  FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
 WHERE c.contype = 'f' AND c.conrelid::regclass::text LIKE 'redrive\\_%'
   AND NOT EXISTS (SELECT FROM pg_index i
                    WHERE i.indrelid = c.conrelid AND i.indkey[0] = a.attnum
                      AND (i.indpred IS NULL
                           OR pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname)))
"""

#: These refer to configuration (DLQs, source queues, targets, rate classes, breakers, routes), which people rarely
#: remove.
UNINDEXED = {
    "redrive_breaker.rate_class_id",
    "redrive_incident.dlq_id",
    "redrive_notification.route_id",
    "redrive_letter.source_id",
    "redrive_letter.target_id",
    "redrive_letter.rate_class_id",
    "redrive_lane.source_id",
    "redrive_lane.breaker_id",
}


def test_a_purge_finds_the_rows_that_refer_to_deleted_rows_by_an_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_UNINDEXED_REFERENCES)
        assert {name for (name,) in cursor.fetchall()} == UNINDEXED
