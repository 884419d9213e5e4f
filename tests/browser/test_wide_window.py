"""Lists, forms and the parking lot in a wide window: tables use the width, and nothing is cut or covered."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Letter
from reprocessing.store.search import saved_filters
from tests.browser.conftest import ADMINISTRATOR, Opening
from tests.browser.test_every_page import TOO_WIDE
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

WIDE = (1440, 900)
HOME = "/admin/reprocessing"
TWO_LINES = 40  # pixels of a row of a list with two lines in a cell
UUIDS = "bd10ad60-830e-45a8-960a-6a74ac01f6fe", "f3316741-b2a4-4190-b64a-d6a4115e6f52"


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
