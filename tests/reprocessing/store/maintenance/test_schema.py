"""What somebody dropped or switched off by hand is named, though its migration is recorded as applied."""

from __future__ import annotations

import pytest
from django.db import connection

from reprocessing.domain.maintenance.findings import Grade
from reprocessing.pipeline.maintenance.doctor import database
from reprocessing.store.maintenance import schema

pytestmark = pytest.mark.django_db


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def names_of(kind: str, table: str) -> list[str]:
    statements = {
        "constraint": "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass",
        "index": "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisunique AND indrelid = %s::regclass "
        "AND indexrelid::regclass::text NOT LIKE '%%_id_%%'",
    }
    with connection.cursor() as cursor:
        cursor.execute(statements[kind], [table])
        return sorted(name for (name,) in cursor.fetchall())


def test_of_a_whole_schema_nothing_is_missing() -> None:
    assert schema.missing() == []


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("DROP TABLE redrive_notice", ["table redrive_notice"]),
        ("ALTER TABLE redrive_notice RENAME COLUMN trouble TO gone", ["column redrive_notice.trouble"]),
        ("DROP TRIGGER payloads_never_change ON redrive_payload", ["trigger payloads_never_change"]),
        ("ALTER TABLE redrive_payload DISABLE TRIGGER payloads_never_change", ["trigger payloads_never_change"]),
        ("DROP FUNCTION redrive_now()", ["function redrive_now"]),
        ("DROP SEQUENCE redrive_fence", ["sequence redrive_fence"]),
    ],
)
def test_what_was_dropped_or_switched_off_is_named(statement: str, missing: list[str]) -> None:
    run(statement)
    assert schema.missing() == missing


def test_a_constraint_that_was_dropped_is_named() -> None:
    (name, *_) = names_of("constraint", "redrive_letter")
    run(f'ALTER TABLE redrive_letter DROP CONSTRAINT "{name}"')
    assert schema.missing() == [f"constraint {name} or index {name}"]


def test_an_index_that_was_dropped_is_named() -> None:
    (name, *_) = names_of("index", "redrive_attempt")
    run(f'DROP INDEX "{name}"')
    assert schema.missing() == [f"index {name}"]


def test_the_doctor_calls_a_dropped_table_an_illness_and_asks_for_nothing_else() -> None:
    run("DROP TABLE redrive_notice")
    (remark,) = database.remarks()
    assert (remark.grade, remark.what) == (
        Grade.ILL,
        "Migrations are recorded as applied, and what they made is not there: table redrive_notice.",
    )
