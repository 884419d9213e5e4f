"""The body of a message in a browser: its tree, its copies, its comparison, and the way through a list."""

from __future__ import annotations

import json

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from reprocessing.models import Letter
from tests.browser.chromium import LAPTOP, PHONE
from tests.browser.conftest import EDITOR, Opening
from tests.browser.test_every_page import BARRIERS, TOO_WIDE
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

BODY = {
    "type": "order.paid", "order": {"id": 9007199254740993, "lines": [{"sku": "A-1"}, {"sku": "B-2"}]},
    "odd name": {"<script>window.__pwned = 1</script>": "<img src=x onerror='window.__pwned = 1'>"},
}  # fmt: skip
#: Texts that a page copies are kept here; a page without HTTPS may not use the clipboard.
KEEP = """() => {
  window.kept = [];
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => window.kept.push(text) } });
}"""


def at(letter: Letter) -> str:
    return f"/admin/reprocessing/letter/{letter.pk}/change/"


def test_the_tree_is_searched_and_paths_and_texts_are_copied(window: Opening) -> None:
    letter = parked(dlq(), body=json.dumps(BODY).encode())
    ann = window("ann", EDITOR)
    ann.open(at(letter))
    ann.press("Show payload")
    ann.sees("9007199254740993", where=".tree")
    ann.ask(KEEP)
    ann.press("Collapse all")
    ann.write("Search names and values", "b-2")
    ann.sees("1 found", where=".tree-tools")
    ann.sees("B-2", where=".tree .hit")
    assert ann.reads('[data-tree="path"]') == "order.lines[1].sku"
    ann.press("Copy path")
    ann.sees("Copied")
    ann.write("Search names and values", "<img")
    assert ann.reads('[data-tree="path"]') == '"odd name"."<script>window.__pwned = 1</script>"'
    ann.do(lambda page: page.locator('[data-copy="body-text"]').click())
    ann.do(lambda page: page.locator('[data-copy="message-id"]').click())
    assert ann.ask("window.kept") == ["order.lines[1].sku", json.dumps(BODY), letter.message_id]
    assert ann.ask("window.__pwned") is None
    ann.ask("document.querySelector('.tree').focus()")
    ann.do(lambda page: page.keyboard.press("ArrowUp"))
    assert ann.reads('[data-tree="path"]') == '"odd name"'


def test_without_scripts_the_tree_opens_and_no_button_is_there_for_nothing(window: Opening) -> None:
    letter = parked(dlq(), body=json.dumps(BODY).encode())
    ann = window("ann", EDITOR, size=PHONE, javascript=False)
    ann.open(at(letter))
    ann.press("Show payload")
    ann.do(lambda page: page.get_by_text("lines", exact=True).click())
    ann.do(lambda page: page.locator(".tree summary").filter(has_text="1").last.click())
    shown = ann.do(lambda page: [one.is_visible() for one in page.locator(".tree-tools, [data-copy]").all()])
    assert shown == [False] * 4


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_a_payload_has_no_barrier_and_is_not_wider_than_its_window(size: tuple[int, int], window: Opening) -> None:
    source = dlq()
    letters = [parked(source, key="key-7", body=json.dumps(BODY).encode()) for _ in range(3)]
    Letter.objects.update(single=False, key_hash=b"key-7")
    ann = window("ann", EDITOR, size=size)
    ann.open(at(letters[1]))
    ann.press("Show payload")
    ann.write("Search names and values", "9007199254740993")
    ann.press("Expand all")
    ann.ask(f"{AXE_FILE_PATH.read_text(encoding='utf-8')};0")
    for scheme in ("light", "dark"):
        ann.dress(scheme)
        assert (ann.ask(TOO_WIDE), ann.ask(BARRIERS)) == ("", []), scheme
    ann.troubles()  # the policy refuses axe-core's own inline styles


def test_a_message_is_compared_with_the_last_one_that_was_delivered(window: Opening) -> None:
    source = dlq()
    letter = parked(source, body=json.dumps(BODY).encode())
    good = parked(source, body=json.dumps(BODY | {"order": {"id": 1}}).encode())
    Letter.objects.filter(pk=good.pk).update(state="delivered", reason="")
    ann = window("ann", EDITOR)
    ann.open(at(letter))
    ann.press("Compare")
    ann.sees("the last delivered message of type order.paid")
    ann.sees('"id": 1', where=".taken-out")
    ann.sees('"id": 9007199254740993', where=".put-in")


def test_a_filtered_list_is_walked_message_by_message(window: Opening) -> None:
    source, other = dlq(), dlq("other-dlq")
    first, _, last = (parked(one, body=b'{"type": "order.paid"}') for one in (source, other, source))
    ann = window("ann", EDITOR)
    ann.open(f"/admin/reprocessing/letter/?dlq__id__exact={source.dlq_id}")
    ann.press(last.message_id)
    ann.press("Next →")
    ann.sees(first.message_id)
    ann.press("Show payload")
    ann.sees("order.paid", where=".tree")
    ann.press("← Previous")
    ann.sees(last.message_id)
    ann.do(lambda page: page.locator(".breadcrumbs").get_by_role("link", name="Messages").click())
    ann.sees(first.message_id)
    assert ann.ask("location.search") == f"?dlq__id__exact={source.dlq_id}"
