"""From a customer's number to the message, in a browser, with scripts and without."""

from __future__ import annotations

import json

import pytest

from reprocessing.models import DeadLetterQueue, Letter, SavedFilter
from reprocessing.pipeline.search import reindex
from tests.browser.chromium import LAPTOP, PHONE
from tests.browser.conftest import EDITOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]


def _orders() -> list[Letter]:
    source = dlq("orders")
    letters = [
        parked(source, key="customer-7", body=json.dumps({"order": {"id": n}, "tenant": "acme"}).encode())
        for n in (4711, 4712, 4713)
    ]
    DeadLetterQueue.objects.update(search_fields=["order_id=body:order.id", "tenant=body:tenant"])
    assert reindex.reindex_dlqs(seconds=10)
    return letters


@pytest.mark.parametrize(("size", "javascript"), [(LAPTOP, True), (PHONE, False)], ids=["laptop", "phone, no scripts"])
def test_a_number_in_the_box_of_the_dashboard_opens_its_message(
    window: Opening, size: tuple[int, int], javascript: bool
) -> None:
    letter = _orders()[0]
    ann = window("ann", EDITOR, size=size, javascript=javascript)
    ann.open("/admin/")
    ann.do(lambda page: page.fill(".find input", "4711"))
    ann.do(lambda page: page.press(".find input", "Enter"))
    ann.sees("Found by the search:")
    ann.sees(letter.message_id, where="#content")
    assert not javascript or ann.ask("document.documentElement.scrollWidth <= innerWidth")


def test_a_search_leads_to_the_parking_lot_whose_filter_is_saved(window: Opening) -> None:
    _orders()
    ann = window("ann", EDITOR)
    ann.open("/admin/search")
    ann.do(lambda page: page.fill("#find-text", "tenant:acme"))
    ann.press("Search")
    ann.sees("tenant is acme in 1 DLQ: orders")
    ann.press("3 parked")
    ann.sees("3 parked messages whose tenant is acme")
    ann.do(lambda page: page.click("text=Save this filter"))
    ann.write("Name", "acme's orders")
    ann.press("Save")
    ann.sees("The filter acme's orders is saved.")
    assert SavedFilter.objects.get().filter["fields"] == "tenant:acme"
