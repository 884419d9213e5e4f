"""Statements: what they violate is told by its name, and the row that did it is shown to nobody."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from reprocessing.models import rows
from tests.reprocessing.models.stock import Stock

pytestmark = pytest.mark.django_db


def test_an_error_names_the_constraint_and_shows_no_row() -> None:
    letter = Stock().letter
    statement = "UPDATE redrive_letter SET attempts = -1, idempotency_key = 'secret' WHERE id = %(id)b"
    with pytest.raises(IntegrityError, match="attempts_are_counted_upwards") as raised, transaction.atomic():
        rows.execute(statement, {"id": letter.pk})
    assert "secret" not in str(raised.value)
    assert "Failing row" not in str(raised.value)
