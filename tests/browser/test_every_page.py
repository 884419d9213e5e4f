"""Every page on a phone, light and dark, with hostile texts: nothing runs or scrolls sideways, and nobody is barred.

In a wide window, lists and forms use the width, and nothing is cut or covered.
"""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from django.contrib.auth.models import User

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Breaker, Letter
from reprocessing.store.search import saved_filters
from tests.browser.chromium import PHONE
from tests.browser.conftest import ADMINISTRATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.admin.site.attacks.hostile import SHORT, TOGETHER, write_everywhere
from tests.reprocessing.admin.site.open_pages import KINDS, addresses, furnished

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: How much wider than the window a page is, and what sticks out of it; a box may scroll inside of itself.
TOO_WIDE = """() => {
  const page = document.documentElement, over = page.scrollWidth - page.clientWidth;
  if (over <= 0) return "";
  const boxed = (one) => one && (getComputedStyle(one).overflowX !== "visible" || boxed(one.parentElement));
  const out = [...document.querySelectorAll("body *")].filter(
    (one) => one.getBoundingClientRect().right > page.clientWidth + 1 && !boxed(one)
  );
  return `${over} px: ` + out.slice(-3).map((one) => one.outerHTML.slice(0, 120)).join(" | ");
}"""
#: What axe-core calls a serious or critical barrier, by the rules of WCAG 2.2, levels A and AA.
BARRIERS = """() => axe.run(document, {
  resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
}).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 150)).join(" | ")}`))"""
#: How a page is read in each scheme: in the dark by the rule of contrast alone, since no other rule asks for colors.
READ = {"light": BARRIERS, "dark": re.sub(r"runOnly: \[.*\]", 'runOnly: ["color-contrast"]', BARRIERS)}
#: Each part has the same share of the pages of a kind; CI opens those of the first.
PARTS = 3
#: A page and not a part of one, which a page asks for.
WHOLE = "document.querySelector('link[rel=icon]') !== null"
WIDE = (1440, 900)
HOME = "/admin/reprocessing"
TWO_LINES = 40  # pixels of a row of a list with two lines in a cell
UUIDS = "bd10ad60-830e-45a8-960a-6a74ac01f6fe", "f3316741-b2a4-4190-b64a-d6a4115e6f52"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_no_script_of_a_stranger_runs_no_page_is_wider_than_a_phone_and_none_has_a_barrier(
    kind: str, part: int, window: Opening
) -> None:
    furnished()
    write_everywhere(TOGETHER, SHORT)
    ann = window("ann", ADMINISTRATOR, size=PHONE)
    wrong: dict[str, list[str]] = {}
    opened = 0
    for name, address in list(addresses(kind).items())[part::PARTS]:
        if name.endswith("_body"):
            continue  # a file, which no page shows
        opened += ann.open(address) == 200
        whole = ann.ask(WHOLE)
        found = [ann.ask("window.__pwned") and "a script ran", *(one for one in ann.troubles() if whole)]
        if whole:
            ann.ask(f"{AXE_FILE_PATH.read_text(encoding='utf-8')};0")
        for scheme in READ if whole else ():
            ann.dress(scheme)
            found.append(f"{scheme} {wide}" if (wide := ann.ask(TOO_WIDE)) else "")
            found += [f"{scheme} {barrier}" for barrier in ann.ask(READ[scheme])]
        ann.troubles()  # the policy refuses axe-core's own inline styles
        if any(found):
            wrong[name] = [one for one in found if one]
    assert wrong == {}
    assert opened > 0


def test_on_a_phone_a_list_s_rows_say_what_each_of_their_columns_is(window: Opening) -> None:
    furnished()
    ann = window("ann", ADMINISTRATOR, size=PHONE)
    ann.open("/admin/reprocessing/auditentry/")
    assert ann.ask("[...document.querySelector('#result_list tbody tr').cells].map((one) => one.dataset.what)") == [
        "Time (UTC)", "Action", "User", "Object", "Reason", "Bulk action",
    ]  # fmt: skip
    assert ann.ask("document.querySelector('.results').scrollWidth <= document.querySelector('.results').clientWidth")
    shown = "document.querySelector('.ways-bar [aria-current]').getBoundingClientRect().right"
    assert 0 < ann.ask(shown) < PHONE[0] + 1


def test_on_a_phone_the_filters_of_a_list_are_folded_above_it(window: Opening) -> None:
    furnished()
    ann = window("ann", ADMINISTRATOR, size=PHONE)
    ann.open(f"{HOME}/letter/")
    ends = "document.querySelector('#changelist-filter').getBoundingClientRect().bottom"
    assert ann.ask(f"{ends} <= document.querySelector('#result_list').getBoundingClientRect().top")
    assert ann.ask("document.querySelectorAll('#changelist-filter details').length") > 0
    assert ann.ask("document.querySelectorAll('#changelist-filter details[open]').length") == 0


def test_on_a_phone_no_value_or_help_text_of_a_row_is_cut(window: Opening) -> None:
    dlq("shop")
    Breaker.objects.update(why="the canary failed after a cooldown of 80 s")
    ann = window("ann", ADMINISTRATOR, size=PHONE)
    ann.open(f"{HOME}/breaker/{Breaker.objects.get().pk}/change/")
    cut = """[...document.querySelectorAll("#content .form-row .readonly, #content .form-row .help")].filter(
      (one) => one.getBoundingClientRect().right > one.closest("fieldset").getBoundingClientRect().right
    ).map((one) => one.innerText)"""
    assert ann.ask(cut) == []


def filled() -> int:
    """Write messages as they are in AWS; the id of their DLQ."""
    source = dlq("shop-orders-dlq")
    for uuid in UUIDS:
        letter = parked(source, key="customer-0031")
        Letter.objects.filter(pk=letter.pk).update(message_id=uuid)
    for _ in range(60):
        parked(source)
    return source.dlq_id


def test_pages_fit_a_wide_window_and_their_ids_are_on_one_line(window: Opening) -> None:
    number = filled()
    ann = window("ann", ADMINISTRATOR, size=WIDE)
    saved_filters.save_filter(User.objects.get(username="ann"), "late", MessageFilter(dlq=number), team=None)
    ann.open(f"{HOME}/letter/?q=key:customer-0031&state__exact=parked&dlq__id__exact={number}")
    heights = ann.ask("[...document.querySelectorAll('#result_list tbody tr')].map((one) => one.offsetHeight)")
    assert len(heights) == 2
    assert max(heights) < TWO_LINES
    frame = "document.querySelector('.results')"
    assert ann.ask(f"{frame}.scrollWidth <= {frame}.clientWidth"), ann.reads(".results")
    background = "getComputedStyle(document.querySelector('.saved h2')).backgroundColor"
    assert ann.ask(background) == "rgba(0, 0, 0, 0)"
    lists = [f"{HOME}/{model}/" for model in ("parkedletter", "failuregroup", "rule", "approval", "discoveredqueue")]
    for address in ("/admin/", *lists, f"{HOME}/rule/add/", f"{HOME}/deadletterqueue/{number}/examine"):
        ann.open(address)
        assert ann.ask(TOO_WIDE) == "", address
    mode = "document.querySelector('#id_mode')"
    assert ann.ask(f"{mode}.clientWidth") > 600


def test_the_bar_of_the_parking_lot_does_not_cover_the_row_in_focus(window: Opening) -> None:
    filled()
    ann = window("ann", ADMINISTRATOR, size=WIDE)
    ann.open(f"{HOME}/parkedletter/")
    for row in (10, 25, 40):
        ann.ask(f"document.querySelectorAll('.lot-tick input')[{row}].focus()")
        covered = ann.ask(
            f"document.querySelectorAll('.lot-tick input')[{row}].getBoundingClientRect().bottom"
            " - document.querySelector('.lot-sticks').getBoundingClientRect().top"
        )
        assert covered <= 0, row
    ann.ask("scrollTo(0, document.documentElement.scrollHeight)")
    ends = "document.querySelector('.lot-list').getBoundingClientRect().bottom"
    assert ann.ask(f"{ends} <= document.querySelector('.lot-sticks').getBoundingClientRect().top")
