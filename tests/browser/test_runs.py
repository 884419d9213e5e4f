"""A run in a browser: planned, compared, started, watched, aborted; and what failed is released."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, BulkAction, Letter, Run, RunMinute
from reprocessing.pipeline.parking_lot import run_bulk_actions
from reprocessing.store.ordering.lanes import database_now
from tests.browser.chromium import PHONE
from tests.browser.conftest import OPERATOR, Opening
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, failure_group, parked
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
    ann.write("Max rate (messages/s)", "2")
    ann.press("Compare")
    ann.sees("Your values", where=".choices")
    ann.press("Choose: Your values")
    ann.sees("monday has these limits now: at most 2 messages/s")
    ann.sees("This plan", where=".choice-own")
    ann.set_clock()
    ann.press("Start…")
    ann.sees("at most 2 messages/s to each target")
    ann.write("Reason", "go")
    ann.press("Start")
    ann.sees("0 %", where=".bar-sum")
    assert "nothing is sent" in ann.reads("#waits")
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
        ("planned", "the shop is mended"), ("changed", "Chosen on the page of the plan."), ("started", "go"),
        ("aborted", "the shop is ill again"),
        ("stopped", "the shop is ill again"),  # its dlq, since the page proposes that
    ]  # fmt: skip


@pytest.mark.parametrize("javascript", [True, False], ids=["scripts", "no_scripts"])
def test_what_failed_is_released_from_the_page_of_its_run(window: Opening, javascript: bool) -> None:
    source = dlq("shop")
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann", selected=3)
    failed, other = [parked(source) for _ in range(2)], parked(source)
    group = failure_group(source, "KeyError")
    Letter.objects.filter(pk__in=[letter.pk for letter in failed]).update(run=run, group=group)
    RunMinute.objects.create(run_id=run.pk, minute=database_now(), sent=3)
    ann = window("ann", OPERATOR, size=PHONE, javascript=javascript)
    ann.open("/admin/reprocessing/run/")
    ann.press("monday")
    ann.sees("KeyError", where=".failed-groups")
    ann.sees("messages per minute")
    newest = "[...document.querySelectorAll('.run-rate rect')].at(-1).getBoundingClientRect()"
    assert 0 < ann.ask(f"{newest}.left") < ann.ask(f"{newest}.right") < PHONE[0]
    ann.press("Release failed messages…")
    ann.sees("parked messages of the run monday")
    ann.write("Reason", "the shop is mended")
    ann.do(lambda page: page.locator("input.default[type=submit]").click())
    run_bulk_actions.run_bulk_action(BulkAction.objects.get().pk, seconds=9)
    assert set(Letter.objects.filter(pk__in=[letter.pk for letter in failed]).values_list("state", flat=True)) == {
        "waiting"
    }
    other.refresh_from_db()
    assert other.state == "parked"
    if javascript:
        ann.open(f"/admin/reprocessing/run/{run.pk}/change/")
        assert ann.ask("document.documentElement.scrollWidth <= innerWidth")
