from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from reprocessing.store import rows
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db


def test_an_error_names_the_constraint_and_shows_no_row() -> None:
    letter = Stock().letter
    statement = "UPDATE redrive_letter SET attempts = -1, idempotency_key = 'secret' WHERE id = %(id)b"
    with pytest.raises(IntegrityError, match="attempt_counts_not_negative") as raised, transaction.atomic():
        rows.execute(statement, {"id": letter.pk})
    assert "secret" not in str(raised.value)
    assert "Failing row" not in str(raised.value)


def test_a_column_is_told_as_its_values() -> None:
    assert rows.column(int, "SELECT n FROM generate_series(1, %(most)b::int) n", {"most": 3}) == [1, 2, 3]
    assert rows.column(str, "SELECT 'a' AS letter WHERE false", {}) == []


def test_a_value_of_another_kind_than_was_asked_for_is_refused() -> None:
    with pytest.raises(TypeError, match="Postgres answered with str where int was expected"):
        rows.value(int, "SELECT '1' AS n", {})
    with pytest.raises(TypeError, match="Postgres answered with NoneType where int was expected"):
        rows.column(int, "SELECT 1 AS n UNION ALL SELECT NULL", {})
    with pytest.raises(TypeError, match="Postgres answered with bool where int was expected"):
        rows.value(int, "SELECT true AS n", {})


def test_a_column_beside_another_is_refused() -> None:
    with pytest.raises(ValueError, match="too many values to unpack"):
        rows.column(int, "SELECT 1 AS id, 2 AS lane_id", {})


@pytest.mark.parametrize("least", [0, 2])
def test_one_value_is_not_told_where_there_is_none_or_another(least: int) -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        rows.value(int, "SELECT n FROM generate_series(1, %(least)b::int) n", {"least": least})


def _mode() -> str:
    return rows.value(str, "SELECT current_setting('plan_cache_mode') AS mode", {})


def test_statements_of_a_slice_are_planned_once_and_later_ones_as_usual() -> None:
    modes = []

    def fail() -> None:
        with rows.planned_once():
            modes.append(_mode())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [*modes, _mode()] == ["force_generic_plan", "auto"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_lost_in_a_slice_is_no_error_of_its_end() -> None:
    with rows.planned_once():
        connection.close()
    assert _mode() == "auto"


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_a_pooler_shares_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(connection.connection, "prepare_threshold", None)
    with rows.planned_once():
        assert _mode() == "auto"
