"""What was discarded is parked again by a named person with a reason, exactly as it was chosen."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.parking import Lot, refusal

pytestmark = pytest.mark.django_db
WHY = ("--reason", "they are needed after all", "--by", "ann")


@pytest.fixture
def lot(add_row: AddRow) -> Lot:
    lot = Lot(add_row("orders"))
    act_on_parked.discard([lot.old.pk, lot.spent.pk], by="bob", reason="old")
    return lot


def test_a_dry_run_restores_nothing_and_says_how_to(lot: Lot, ask: Ask) -> None:
    said = ask("restore_discarded", "orders", *WHY)
    assert "orders: 2 discarded messages match:" in said
    assert f"{lot.old.message_id}, key 'a', since" in said
    assert "This was a dry run: none of them is restored." in said
    assert lot.states() == ["discarded", "parked", "discarded"]


def test_confirmed_they_are_parked_for_what_they_were_parked_for(lot: Lot, ask: Ask) -> None:
    assert "1 of 1 is restored." in ask("restore_discarded", "orders", "--key", "b", *WHY, "--confirm")
    assert lot.states() == ["discarded", "parked", "parked"]
    assert Letter.objects.get(pk=lot.spent.pk).reason == "attempts_spent"
    assert AuditEntry.objects.filter(act="restored").values_list("by", "reason").get() == ("ann", WHY[1])


def test_what_somebody_else_restored_since_is_not_touched(lot: Lot, ask_json: AskJson) -> None:
    mark = ask_json("restore_discarded", "orders", *WHY)["selection"]
    act_on_parked.restore([lot.old.pk], by="bob", reason="mine")
    told = refusal("restore_discarded", "orders", *WHY, "--selection", mark, "--confirm")
    assert "some messages of the dry run are no longer discarded" in told
    assert lot.states() == ["parked", "parked", "discarded"]


def test_a_filter_that_means_none_says_what_there_is(lot: Lot) -> None:
    told = refusal("restore_discarded", "orders", "--key", "x", *WHY)
    assert told.startswith("No discarded message of orders matches --key=x. Discarded there: 2. ")
