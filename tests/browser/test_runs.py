"""A run in a browser: planned, started, watched and aborted."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, Letter, Run
from reprocessing.store.ordering.lanes import database_now
from tests.browser.conftest import OPERATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.commands.stock import add_letter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

EVERY = 3.0  # seconds between two looks of a run's page


@pytest.fixture(autouse=True)
def _brisk(settings: Settings) -> None:
    settings.REDRIVE = {"COUNT_LAG": 0}


def test_a_run_is_planned_started_watched_and_aborted(window: Opening) -> None:
    source = dlq("shop")
    for n in range(4):
        add_letter(
            source, LetterState.CAPTURED, planned=True, sequence=f"{n:06}", key_hash=b"%d" % n, single=True,
        )  # fmt: skip
    ann = window("ann", OPERATOR)
    ann.open("/admin/reprocessing/run/add/")
    ann.choose("Dead-letter queue", "shop")
    ann.write("Name", "monday")
    ann.write("Reason", "the shop is mended")
    ann.tick("input[name=looks]", off=True)  # what was captured is all there is
    ann.press("Plan")
    ann.sees("Nothing is sent")
    assert "Messages\n4" in ann.reads("#run")
    ann.set_clock()
    ann.press("Start…")
    ann.write("Reason", "go")
    ann.press("Start")
    ann.sees("0 %", where=".bar-sum")
    for letter in Letter.objects.order_by("pk")[:2]:
        Letter.objects.filter(pk=letter.pk).update(state="delivered", finished_at=database_now())
    ann.pass_time(EVERY)
    ann.sees("50 %", where=".bar-sum")
    ann.press("Abort…")
    ann.write("Reason", "the shop is ill again")
    ann.press("Abort")
    ann.sees("aborted", where="#run .chip")
    assert Run.objects.get().state == "aborted"
    assert list(AuditEntry.objects.order_by("pk").values_list("act", "reason")) == [
        ("planned", "the shop is mended"), ("started", "go"), ("aborted", "the shop is ill again"),
        ("stopped", "the shop is ill again"),  # its dlq, since the page proposes that
    ]  # fmt: skip
