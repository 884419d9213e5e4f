"""One command stops every send; who did it and why is known, and nothing but a person lifts it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from django.core.management.base import CommandError
from django.db import connection

from reprocessing.management.console import format_time
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, GlobalStop
from reprocessing.models.run import Run, RunKind, RunState
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.safety import stops
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal

pytestmark = pytest.mark.django_db
WHY = ("--reason", "the shop is down", "--by", "ann")


def active(dlq: DeadLetterQueue) -> bool:
    Run.objects.get_or_create(dlq=dlq, kind=RunKind.AUTOMATIC, defaults={"name": dlq.name, "state": RunState.RUNNING})
    return rows.execute(ACTIVE_RUNS + " AND d.id = %(dlq)b", {"dlq": dlq.pk}) == 1


def acts() -> list[tuple[str, str | None, str, str]]:
    return list(AuditEntry.objects.order_by("id").values_list("act", "dlq__name", "by", "reason"))


def test_who_acts_under_a_hold_and_a_stop_is_told_of_both_and_how_each_ends(ask: Ask, add_row: AddRow) -> None:
    orders = add_row("orders")
    ask("stop_redrive", "orders", *WHY, "--confirm")
    held = restore_hold.begin_hold(lanes.database_now(), by="bob", reason="the disk broke")
    stop = stops.stop_of(orders.pk)
    with pytest.raises(CommandError) as refused:
        ask("drain_dlq", "orders", "--confirm")
    assert stop is not None
    assert str(refused.value) == (
        f'Everything is held since {format_time(held.since)} by bob ("the disk broke"): PostgreSQL was restored from a '
        "backup. Nothing is sent until after_restore resolve and release. To see what is known: "
        "manage.py after_restore report\n"
        f'orders is stopped since {format_time(stop.since)} by ann ("the shop is down"): '
        "nothing is sent. To resume: manage.py resume_redrive orders --reason WHY --confirm"
    )


@pytest.mark.parametrize(("which", "dlq", "still"), [("orders", "orders", True), ("--all", None, False)])
def test_what_is_stopped_sends_nothing_until_it_is_resumed_and_the_others_go_on(
    ask: Ask, add_row: AddRow, which: str, dlq: str | None, still: bool
) -> None:
    orders, mails = add_row("orders"), add_row("mails")
    ask("stop_redrive", which, *WHY, "--confirm")
    assert [active(orders), active(mails)] == [False, still]
    ask("resume_redrive", which, "--reason", "mended", "--by", "bob", "--confirm")
    assert [active(orders), active(mails)] == [True, True]
    told = [(AuditAct.STOPPED, dlq, "ann", "the shop is down"), (AuditAct.RESUMED, dlq, "bob", "mended")]
    assert acts() == told
    assert AuditEntry.objects.get(act=AuditAct.RESUMED).before["by"] == "ann"
    assert "not stopped, nothing to resume" in ask("resume_redrive", which, *WHY, "--confirm")
    assert acts() == told


def test_who_stops_an_automatic_dlq_is_told_that_new_messages_stay_in_sqs(ask: Ask, add_row: AddRow) -> None:
    add_row("orders", mode="automatic")
    add_row("mails")
    said = "new messages stay in SQS, until their retention ends."
    assert said in ask("stop_redrive", "orders", *WHY, "--confirm")
    assert said not in ask("stop_redrive", "mails", *WHY, "--confirm")
    assert "nothing is captured or sent. To resume:" in ask("redrive_status", "orders")
    assert "nothing is sent. To resume:" in ask("redrive_status", "mails")


@pytest.mark.parametrize("which", ["orders", "--all"])
def test_without_confirm_nothing_is_stopped_nor_resumed(ask: Ask, add_row: AddRow, which: str) -> None:
    orders = add_row("orders")
    assert ask("stop_redrive", which, *WHY).startswith("NOT STOPPED: this was a dry run.")
    assert active(orders)
    ask("stop_redrive", which, *WHY, "--confirm")
    assert "This was a dry run" in ask("resume_redrive", which, *WHY)
    assert not active(orders)
    assert len(acts()) == 1


@pytest.mark.parametrize("which", ["orders", "--all"])
def test_a_second_stop_changes_nothing_and_says_who_was_first(ask: Ask, add_row: AddRow, which: str) -> None:
    add_row("orders")
    ask("stop_redrive", which, *WHY, "--confirm")
    said = ask("stop_redrive", which, "--reason", "me too", "--by", "bob", "--confirm")
    assert "was stopped already" in said
    assert 'by ann ("the shop is down")' in said
    assert len(acts()) == 1


def test_each_stop_is_lifted_by_itself_and_the_other_is_named(ask: Ask, ask_json: AskJson, add_row: AddRow) -> None:
    orders = add_row("orders")
    ask("stop_redrive", "orders", *WHY, "--confirm")
    ask("stop_redrive", "--all", *WHY, "--confirm")
    said = ask_json("resume_redrive", "orders", *WHY, "--confirm")
    assert said["resumed"]
    assert "resume_redrive --all" in said["still_stopped"][0]
    ask("stop_redrive", "orders", *WHY, "--confirm")
    said = ask_json("resume_redrive", "--all", *WHY, "--confirm")
    assert said["still_stopped"] == [
        "orders is still stopped by a stop of its own: manage.py resume_redrive orders --reason WHY --confirm"
    ]
    assert not active(orders)


def test_a_program_reads_what_holds(ask_json: AskJson, add_row: AddRow) -> None:
    add_row("orders")
    assert ask_json("stop_redrive", "orders", *WHY) == {"dlq": "orders", "dry_run": True, "stopped": False}
    said = ask_json("stop_redrive", "orders", *WHY, "--confirm")
    assert said.pop("since").endswith("Z")
    assert said == {
        "dlq": "orders", "dry_run": False, "stopped": True, "new": True, "by": "ann", "reason": "the shop is down",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (WHY, "Give the name of a DLQ, or --all"),
        (("orders", "--all", *WHY), "Give the name of a DLQ, or --all"),
        (("orders", "--confirm"), "--reason"),
        (("orders", "--reason", " "), "it is empty"),
    ],
)
def test_a_stop_names_one_or_all_and_a_reason(add_row: AddRow, given: tuple[str, ...], why: str) -> None:
    add_row("orders")
    assert why in refusal("stop_redrive", *given)


def test_a_dlq_that_is_not_there_cannot_be_stopped() -> None:
    with pytest.raises(DeadLetterQueue.DoesNotExist):
        stops.stop(0, by="ann", reason="why")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("of_all", [True, False])
def test_of_many_at_once_one_stops_and_the_others_hear_of_it(add_row: AddRow, of_all: bool) -> None:
    key = None if of_all else add_row("orders").pk
    found: list[stops.Stop] = []

    def stop(by: str) -> None:
        try:
            found.append(stops.stop(key, by=by, reason="why"))
        finally:
            connection.close()

    threads = [threading.Thread(target=stop, args=[f"person {number}"]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.new for one in found].count(True) == 1
    assert len({one.by for one in found}) == 1
    assert len(found) == 8
    assert len(acts()) == 1
    GlobalStop.objects.all().delete()


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_reader_who_goes_away_keeps_nothing_from_being_done(add_row: AddRow) -> None:
    """`stop_redrive … | head -0`: Python would complain as it ends, and end with a status of its own."""
    orders = add_row("orders")
    arguments = [sys.executable, "manage.py", "stop_redrive", "orders", *WHY, "--confirm"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    database = connection.settings_dict
    environment["DATABASE_URL"] = environment["DATABASE_URL"].rpartition("/")[0] + f"/{database['NAME']}"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    orders.refresh_from_db()
    assert orders.stopped_by == "ann"
