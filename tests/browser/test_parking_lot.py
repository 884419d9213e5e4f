"""The parking lot in a browser, with scripts and without."""

from __future__ import annotations

import pytest

from reprocessing.models import BulkAction, Letter
from reprocessing.pipeline.parking_lot import run_bulk_actions
from tests.browser.chromium import PHONE
from tests.browser.conftest import OPERATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]
LOT = "/admin/reprocessing/parkedletter/"

EVERY = 2.0  # seconds between two looks of an operation's page


def test_all_that_match_are_discarded_and_watched_until_they_are(window: Opening) -> None:
    source = dlq("shop")
    for _ in range(3):
        parked(source, key="account-7")
    ann = window("ann", OPERATOR)
    ann.open(LOT)
    ann.tick("#tick-all")
    ann.sees("(3)", where="#ticked")
    ann.tick("#scope-all")
    ann.press("Discard…")
    ann.sees("all 3 parked messages")
    ann.write("Reason", "test data")
    ann.set_clock()
    ann.press("Discard all 3")
    ann.sees("0 of 3", where="#progress .chip")
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    ann.pass_time(EVERY)
    ann.sees("3 of 3", where="#progress .chip")
    assert set(Letter.objects.values_list("state", flat=True)) == {"discarded"}


def test_on_a_phone_without_scripts_one_letter_is_released_and_the_other_reviewer_is_told(window: Opening) -> None:
    letter = parked(dlq("shop"))
    ann, ben = window("ann", OPERATOR, size=PHONE, javascript=False), window("ben", OPERATOR, size=PHONE)
    for one in (ann, ben):
        one.open(LOT)
        one.tick("input[name=pick]")
        one.press("Release…")
        one.write("Reason", "the shop is mended")
    ann.press("Release")
    ann.sees("1 message released")
    ben.press("Release")
    ben.sees("Nothing was done.")
    ben.sees("Last action: released by ann")
    letter.refresh_from_db()
    assert letter.released_by == "ann"
    assert ben.ask("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_the_bar_covers_no_letter_before_one_is_ticked(window: Opening) -> None:
    source = dlq("shop")
    for _ in range(9):
        parked(source)
    ann = window("ann", OPERATOR, size=PHONE)
    ann.open(LOT)
    bar = "getComputedStyle(document.querySelector('.lot-bar')).position"
    assert ann.ask(bar) == "static"
    ann.tick("input[name=pick]")
    assert ann.ask(bar) == "sticky"
    assert ann.ask("document.querySelector('.lot-bar').offsetHeight") < PHONE[1] / 4
