"""Messages are grouped by a field, and those of one value are edited, in a browser."""

from __future__ import annotations

import pytest

from reprocessing.models import BulkAction, Revision
from reprocessing.pipeline.parking_lot import run_bulk_actions
from tests.browser.chromium import PHONE
from tests.browser.conftest import EDITOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]
LOT = "/admin/reprocessing/parkedletter/"


def test_on_a_phone_without_scripts_the_messages_of_one_value_are_edited(window: Opening) -> None:
    source = dlq("shop")
    for country in ("FR", "FR", "DE"):
        parked(source, body=b'{"country": "%s"}' % country.encode())
    ann = window("ann", EDITOR, size=PHONE, javascript=False)
    ann.open(LOT)
    ann.press("Group by…")
    ann.write("Field", "body:country")
    ann.press("Show groups")
    ann.sees("2 values of body:country in 3 parked messages")
    assert ann.ask("document.documentElement.scrollWidth <= innerWidth")
    ann.do(lambda page: page.get_by_role("link", name="FR").click())
    ann.sees("2 parked messages whose body:country is")
    assert ann.ask("document.documentElement.scrollWidth <= innerWidth")
    ann.tick("#scope-all")
    ann.press("Edit…")
    ann.write("Path", "/country")
    ann.write("Value", "IT")
    ann.press("Preview")
    ann.sees("The patch applies to 2 of 2 checked messages")
    assert ann.ask("document.documentElement.scrollWidth <= innerWidth")
    ann.write("Reason", "wrong country")
    ann.press("Edit 2 messages")
    ann.sees("replace /country")
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    assert [bytes(one.body) for one in Revision.objects.all()] == [b'{"country": "IT"}'] * 2
