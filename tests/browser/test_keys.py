"""Keys do what the visible links, boxes and buttons do."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import Window
from tests.browser.conftest import ADMINISTRATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]


def press(window: Window, *keys: str) -> None:
    """Press these keys, one after another."""

    def work(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    window.do(work)


def focused(window: Window) -> str:
    """Return the text of the link that has the focus; empty: no link of a row has it."""
    return str(window.ask("document.activeElement.closest('tr') ? document.activeElement.textContent : ''"))


def test_j_and_k_walk_through_the_rows_x_ticks_and_r_releases_what_is_ticked(window: Opening) -> None:
    source = dlq("orders")
    for _ in range(3):
        parked(source)
    ann = window("ann", ADMINISTRATOR)
    ann.open("/admin/reprocessing/parkedletter/")
    rows = "[...document.querySelectorAll('#content tbody tr')]"
    links = ann.ask(f"{rows}.map((row) => row.querySelector('a').textContent)")
    walked = list[str]()
    for key in ("j", "j", "j", "j", "k"):
        press(ann, key)
        walked.append(focused(ann))
    assert walked == [links[0], links[1], links[2], links[2], links[1]]
    press(ann, "x", "r")
    ann.sees("1 message")
    assert ann.ask("location.pathname") == "/admin/reprocessing/parkedletter/release"


def test_a_key_in_a_field_is_a_letter_and_slash_goes_to_the_search(window: Opening) -> None:
    parked(dlq("orders"))
    ann = window("ann", ADMINISTRATOR)
    ann.open("/admin/reprocessing/letter/")
    press(ann, "/", "j", "?")
    assert ann.ask("document.activeElement.value") == "j?"


def test_question_mark_lists_the_keys_and_e_edits(window: Opening) -> None:
    letter = parked(dlq("orders"))
    ann = window("ann", ADMINISTRATOR)
    ann.open(f"/admin/reprocessing/letter/{letter.pk}/change/")
    press(ann, "?")
    ann.sees("edit the message", where="#keys")
    press(ann, "Escape")
    ann.sees_no_more("edit the message", where="#keys")
    press(ann, "e")
    ann.sees("Exactly this text is sent")


@pytest.mark.parametrize("leave", ["Escape", "elsewhere"])
def test_the_menu_more_closes_by_escape_and_by_a_click_elsewhere(window: Opening, leave: str) -> None:
    ann = window("ann", ADMINISTRATOR)
    ann.open("/admin/")
    is_open = "document.querySelector('.ways-bar details').open"
    ann.do(lambda page: page.click(".ways-bar summary"))
    assert ann.ask(is_open)
    ann.do(lambda page: page.keyboard.press("Escape") if leave == "Escape" else page.click("h1"))
    assert not ann.ask(is_open)
