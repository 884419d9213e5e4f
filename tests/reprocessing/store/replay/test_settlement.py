from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import pytest

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import Claim, Letter
from reprocessing.store.replay.settlement import LetterClosing, close_letters
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", ["captured", "sending", "awaiting"])
def test_a_letter_in_another_state_is_not_closed(state: str) -> None:
    letter = Stock().letter
    Letter.objects.update(state=state)
    assert close_letters([LetterClosing(letter.pk, LetterState.DISCARDED)]) == []
    assert Letter.objects.get().state == state


@pytest.mark.parametrize(
    ("closing", "claim"),
    [
        ({"state": LetterState.PARKED, "reason": ParkedReason.QUARANTINED}, "free"),
        ({"state": LetterState.DISCARDED}, "discarded"),
    ],
)
def test_the_key_of_a_closed_letter_is_free_or_discarded(closing: dict[str, object], claim: str) -> None:
    stock = Stock()
    Letter.objects.update(idempotency_key="k")
    Claim.objects.create(
        target=stock.target, key_space=str(stock.dlq.pk), key_hash=sha256(b"k").digest(), letter=stock.letter,
        state="held", body_hash=b"b" * 32, until=NOW + timedelta(hours=1),
    )  # fmt: skip
    close_letters([LetterClosing(stock.letter.pk, **closing)])  # type: ignore[arg-type]
    assert Claim.objects.get().state == claim
