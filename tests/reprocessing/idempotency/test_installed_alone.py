"""The app in a project without the others; its checks; its command."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from reprocessing.idempotency import decorator, once, purge
from reprocessing.idempotency.checks import settings_are_clear
from reprocessing.idempotency.models import Claim
from tests.reprocessing.idempotency.stock import SPACE, project


@pytest.fixture
def empty_database(transactional_db: None) -> Iterator[str]:
    name = f"{connection.settings_dict['NAME']}_alone"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(f'CREATE DATABASE "{name}" STRATEGY file_copy')
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}"')


@pytest.mark.soak
def test_it_works_alone_in_a_project_of_its_own(empty_database: str, tmp_path: Path) -> None:
    done = project(
        """
from django.core.management import call_command
call_command("check")
call_command("makemigrations", "--check", "--dry-run", verbosity=0)
call_command("migrate", verbosity=0)
from reprocessing.idempotency import once
for _ in range(2):
    with once("key", space="orders") as claim:
        if claim.found:
            print(json.dumps(claim.found.result))
        claim.result("done")
""",
        name=empty_database, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '"done"'


def ids(settings: Any, value: object) -> list[str | None]:  # noqa: ANN401
    settings.REDRIVE_IDEMPOTENCY = value
    return [one.id for one in settings_are_clear(None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, []), ({"KEEP": timedelta(days=28)}, []), ({"KEEP": timedelta(days=28, microseconds=-1)}, ["W001"]),
        ({"KEEP": 86_400}, ["W001"]), ({"KEEP": 0}, ["E001"]), ({"KEEP": "30d"}, ["E001"]),
        ({"LEASE": timedelta(hours=13)}, ["E001"]), ({"KEPT": 5}, ["E001"]), ({"ERROR_MESSAGES": 1}, ["E001"]),
        ({"DATABASE": ""}, ["E001"]), ({"DATABASE": "other"}, ["E002"]), ([], ["E001"]),
    ],
)  # fmt: skip
def test_the_settings_are_checked(settings: Any, value: object, expected: list[str]) -> None:  # noqa: ANN401
    assert ids(settings, value) == [f"redrive_idempotency.{number}" for number in expected]


def test_a_decorator_that_forgets_too_soon_is_a_warning(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    monkeypatch.setattr(decorator, "keep_by_space", known := dict[str, Any]())
    monkeypatch.setattr("reprocessing.idempotency.checks.keep_by_space", known)
    decorator.idempotent(key=lambda: 1, space="orders", keep=timedelta(days=2))(lambda: 1)
    assert ids(settings, {}) == ["redrive_idempotency.W001"]


def claimed(**changes: str) -> None:
    """Make five old claims; each change of a claim is an SQL expression."""
    for number in range(5):
        with once(number, space=SPACE):
            pass
    with connection.cursor() as cursor:
        cursor.execute("UPDATE redrive_idempotency_claim SET keep_until = now() - interval '1 second'")
        for key, change in changes.items():
            cursor.execute(f"UPDATE redrive_idempotency_claim SET {change} WHERE key = %s", [key.lstrip("_")])


def left() -> list[str]:
    return sorted(Claim.objects.values_list("key", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("batch", [1, 2, 1_000])
def test_only_old_claims_are_purged_in_batches(batch: int) -> None:
    working = "state = 'in_progress', done_at = NULL, lease_until = now()"
    later = "interval '1 hour'"
    claimed(_1=f"keep_until = now() + {later}", _2=f"{working} + {later}", _3=f"{working} - {later}")
    assert purge(batch=batch) == 3
    assert left() == ["1", "2"]


@pytest.mark.django_db(transaction=True)
def test_the_command_counts_without_confirm_and_deletes_with_it() -> None:
    claimed(_4="keep_until = now() + interval '1 hour'")
    told = StringIO()
    call_command("purge_idempotency", stdout=told)
    dry = "NOT CHANGED: this was a dry run. With --confirm, 4 claims are purged.\n"
    assert (told.getvalue(), len(left())) == (dry, 5)
    told = StringIO()
    call_command("purge_idempotency", "--confirm", "--batch", "2", stdout=told)
    assert (told.getvalue(), left()) == ("Purged: 4.\n", ["4"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--database", "other"], 'DATABASES has no "other". It has: default.'),
        (["--batch", "0"], "Error: argument --batch: '0' is not a whole number of at least 1 and at most 100,000"),
        (["--batch", "²"], "Error: argument --batch: '²' is not a whole number of at least 1 and at most 100,000"),
    ],
)
def test_the_command_refuses_in_a_sentence(options: list[str], words: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("purge_idempotency", *options)
    assert str(refused.value) == words
