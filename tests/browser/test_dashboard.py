from __future__ import annotations

import pytest

from reprocessing.store.safety import stops
from tests.browser.conftest import OPERATOR, VIEWER, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

EVERY = 5.0  # seconds between two looks of the board


def test_figures_renew_without_a_reload(window: Opening) -> None:
    shop = dlq("shop")
    parked(shop)
    ann = window("ann", VIEWER)
    ann.set_clock()
    ann.open("/admin/")
    ann.sees("1 message to review")
    ann.ask("window.same = true")
    parked(shop)
    ann.pass_time(EVERY)
    ann.sees("2 messages to review")
    assert ann.ask("window.same") is True


def test_a_board_that_gets_no_answer_says_that_it_is_old(window: Opening) -> None:
    ann = window("ann", VIEWER)
    ann.set_clock()
    ann.open("/admin/")
    ann.lose_the_net()
    ann.pass_time(EVERY)
    ann.sees("No answer from the server: these figures are old.")
    assert any("/admin/board" in one for one in ann.troubles())
    ann.lose_the_net(lost=False)
    ann.pass_time(EVERY)
    ann.sees_no_more("No answer from the server: these figures are old.")
    ann.troubles()  # what was tried while there was no net


def test_a_board_that_is_open_says_that_everything_was_stopped_and_that_it_goes_on(window: Opening) -> None:
    ann = window("ann", OPERATOR)
    ann.set_clock()
    ann.open("/admin/")
    stops.stop(None, by="bob", reason="the database is ill")
    ann.pass_time(EVERY)
    ann.sees("by bob: the database is ill", where=".halt")
    ann.sees_no_more("Stop everything…")
    stops.resume(None, by="bob", reason="it is well again")
    ann.pass_time(EVERY)
    ann.sees("Stop everything…")
    ann.sees_no_more("Everything is stopped")
