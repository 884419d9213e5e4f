"""The dashboard in a browser: live figures, old figures, stop of everything."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from reprocessing.models import AuditEntry, GlobalStop
from reprocessing.store.safety import stops
from tests.browser.chromium import PHONE
from tests.browser.conftest import ADMINISTRATOR, OPERATOR, VIEWER, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

EVERY = 5.0  # seconds between two looks of the board


def test_somebody_logs_in_and_is_shown_the_board(window: Opening) -> None:
    User.objects.create_superuser("root", password="a pass phrase")
    root = window("root")
    root.open("/")
    assert root.address == "/admin/login/"
    root.write("Username", "root")
    root.write("Password", "a pass phrase")
    root.press("Log in")
    root.sees("No DLQ has been added yet.")
    assert root.address == "/admin/"


def test_figures_renew_without_a_reload(window: Opening) -> None:
    shop = dlq("shop")
    parked(shop)
    ann = window("ann", VIEWER)
    ann.set_clock()
    ann.open("/admin/")
    ann.sees("1", where=".figures .warm b")
    ann.ask("window.same = true")
    parked(shop)
    ann.pass_time(EVERY)
    ann.sees("2", where=".figures .warm b")
    assert ann.ask("window.same") is True


def test_filter_order_and_scrolled_place_stay_when_the_table_refreshes_on_a_phone(window: Opening) -> None:
    for name in ("shop-a", "shop-b", "mail"):
        parked(dlq(name))
    ann = window("ann", VIEWER, size=PHONE)
    ann.set_clock()
    ann.open("/admin/")
    ann.write("Name", "shop")
    ann.choose("State", "needs review")
    ann.press("Filter")
    ann.sees("2 DLQs that match")
    for _ in range(2):
        ann.do(lambda page: page.locator("#dlqs thead a").first.click())
    names = "[...document.querySelectorAll('#dlqs tbody th')].map((cell) => cell.textContent)"
    assert ann.ask(names) == ["shop-b", "shop-a"]
    parked(dlq("shop-c"))
    ann.write("Name", "typing")
    ann.ask("document.querySelector('.scroll').scrollLeft = 120")
    ann.pass_time(EVERY)
    ann.sees("shop-c")
    assert ann.ask(names) == ["shop-c", "shop-b", "shop-a"]
    kept = "[document.querySelector('.scroll').scrollLeft, [...document.querySelectorAll('[name=q]')].at(-1).value]"
    assert ann.ask(kept) == [120, "typing"]
    assert ann.ask("document.querySelector('.act .button').getBoundingClientRect().right") <= PHONE[0]


def test_table_is_filtered_and_sorted_without_javascript(window: Opening) -> None:
    for name in ("shop-a", "shop-b", "mail"):
        parked(dlq(name))
    ann = window("ann", VIEWER, javascript=False)
    ann.open("/admin/")
    ann.write("Name", "shop")
    ann.press("Filter")
    ann.sees("2 DLQs that match")
    ann.press("Needs review")
    assert "sort=-review" in ann.do(lambda page: page.url)
    ann.press("Review 1")
    assert ann.address == "/admin/reprocessing/parkedletter/"


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
    ann.sees('by bob: "the database is ill"', where=".halt")
    ann.sees_no_more("Stop everything…")
    stops.resume(None, by="bob", reason="it is well again")
    ann.pass_time(EVERY)
    ann.sees("Stop everything…")
    ann.sees_no_more("Everything is stopped")


def test_everything_is_stopped_from_a_phone_and_goes_on_again(window: Opening) -> None:
    ann, ben = window("ann", OPERATOR, size=PHONE), window("ben", VIEWER)
    ann.open("/admin/")
    ann.press("Stop everything…")
    ann.write("Reason", "the database is ill")
    ann.press("Stop everything")
    ann.sees("Everything is stopped", where=".halt")
    ben.open("/admin/reprocessing/letter/")
    assert 'by ann: "the database is ill"' in ben.reads(".halt")
    ann.press("Resume…")
    ann.write("Reason", "it is well again")
    ann.press("Resume everything")
    ann.sees("Everything is resumed")
    assert not GlobalStop.objects.exists()
    assert list(AuditEntry.objects.order_by("id").values_list("act", "by", "reason")) == [
        ("stopped", "ann", "the database is ill"), ("resumed", "ann", "it is well again"),
    ]  # fmt: skip


@pytest.mark.parametrize("wide", [1280, 1440])
def test_the_navigation_has_one_line_and_nothing_is_cut_off(wide: int, window: Opening) -> None:
    root = window("root", ADMINISTRATOR, size=(wide, 800), javascript=False)
    root.open("/admin/")
    lines = "[...document.querySelectorAll('.ways-bar > ul > li')].map((one) => one.getBoundingClientRect().top)"
    assert len(set(root.ask(lines))) == 1
    assert root.ask("document.querySelector('.ways-bar details').getBoundingClientRect().right") < wide
    root.do(lambda page: page.locator(".ways-bar summary").press("Enter"))
    root.sees("API tokens", where=".ways-bar details")
