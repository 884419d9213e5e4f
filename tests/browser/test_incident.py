"""An incident from the dashboard to an empty parking lot, and a bulk action that is aborted."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, BulkAction, Letter
from reprocessing.pipeline.parking_lot import group_failures, run_bulk_actions
from reprocessing.store.parking_lot import bulk_actions
from tests.browser.conftest import OPERATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

EVERY = 2.0  # seconds between two looks of an operation's page
LETTERS = 12


@pytest.fixture
def incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters that died of one cause, parked; operations go five letters at a time."""
    monkeypatch.setattr(bulk_actions, "BATCH_LETTERS", 5)
    shop = dlq("shop")
    for _ in range(LETTERS):
        parked(shop, body=b'{"order": 1}')
    group_failures.assign_groups(batches=1)


def worked(batches: int) -> None:
    """A worker takes the operation up, for so many batches."""
    for _ in range(batches):
        run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=0)


def test_an_incident_from_the_first_look_to_an_empty_parking_lot(incident: None, window: Opening) -> None:
    ann = window("ann", OPERATOR)
    ann.set_clock()
    ann.open("/admin/")
    ann.sees(str(LETTERS), where=".figures .warm")
    ann.press("Failure groups")
    ann.press("JSON with order")
    ann.press("Act on parked messages…")
    ann.tick("#scope-all")
    ann.press("Release…")
    ann.write("Reason", "the shop is mended")
    ann.press(f"Release all {LETTERS}")
    ann.sees(f"0 of {LETTERS}", where="#progress .chip")
    ann.ask("window.same = true")
    worked(1)
    ann.pass_time(EVERY)
    ann.sees(f"5 of {LETTERS}", where="#progress .chip")
    worked(2)
    ann.pass_time(EVERY)
    ann.sees("Released", where="#progress h2")
    assert ann.ask("window.same") is True
    ann.open("/admin/reprocessing/parkedletter/")
    ann.sees("The parking lot is empty.")
    assert set(Letter.objects.values_list("state", "released_by")) == {("waiting", "ann")}
    assert AuditEntry.objects.filter(act="released", by="ann", reason="the shop is mended").count() >= LETTERS


def test_an_operation_is_ended_before_its_end(incident: None, window: Opening) -> None:
    ann = window("ann", OPERATOR)
    ann.open("/admin/reprocessing/parkedletter/")
    ann.tick("#scope-all")
    ann.press("Discard…")
    ann.write("Reason", "test data")
    ann.press(f"Discard all {LETTERS}")
    worked(1)
    ann.write("Reason", "it was no test data")
    ann.press("Abort")
    ann.sees("ann aborted it: it was no test data", where="#progress")
    worked(3)
    states = Letter.objects.values_list("state", flat=True)
    assert {state: list(states).count(state) for state in set(states)} == {"discarded": 5, "parked": LETTERS - 5}
