from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

from reprocessing.admin.parking_lot import decision
from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.models import Letter
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = pytest.mark.django_db(transaction=True)


def is_locked(model: type[Model], pk: int) -> bool:
    """Whether somebody else, on a connection of their own, would have to wait for the row."""

    def somebody_else() -> bool:
        try:
            with transaction.atomic():
                model._default_manager.select_for_update(nowait=True).get(pk=pk)
        except DatabaseError:
            return True
        finally:
            connection.close()
        return False

    with ThreadPoolExecutor(1) as other:
        return other.submit(somebody_else).result()


def observed(look: Callable[[], bool], seen: list[bool], then: Callable[..., object]) -> Callable[..., object]:
    def step(*arguments: object, **named: object) -> object:
        seen.append(look())
        return then(*arguments, **named)

    return step


def test_a_letter_is_locked_from_the_look_at_it_until_the_action(monkeypatch: pytest.MonkeyPatch) -> None:
    letter, seen = parked(dlq()), list[bool]()
    look = observed(lambda: is_locked(Letter, letter.pk), seen, decision._changed)
    monkeypatch.setattr(decision, "_changed", look)
    asked = decision.unpack_messages(decision.pack_messages([letter]))
    reviewed = decision.decide(DecisionKind.DISCARD, asked, by="ann", reason="test data")
    assert [seen, reviewed.done, reviewed.refused] == [[True], (letter.pk,), {}]
