"""Commands request what needs a second person; approve, decline and break_glass decide about it."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reprocessing.models import Approval, ApprovalDefault, DeadLetterQueue, Letter, Run
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.pipeline.approvals.two_people import limited, states

pytestmark = pytest.mark.django_db
ANN = ("--reason", "obsolete", "--by", "ann")
BOB = ("--reason", "checked", "--by", "bob")


def test_a_discard_is_requested_approved_and_done(ask: Ask, ask_json: AskJson) -> None:
    letters = limited(1, letters=3)
    assert "This needs a second person" in ask("discard_parked", "shop-dlq", *ANN)
    with pytest.raises(CommandError) as refused:
        call_command("discard_parked", "shop-dlq", *ANN, "--confirm")
    row = Approval.objects.get()
    assert (refused.value.returncode, row.messages, row.by, states(letters)) == (3, 3, "ann", {"parked"})
    assert f"approve {row.pk} --reason WHY --by NAME --confirm" in str(refused.value)
    assert [found["approval"] for found in ask_json("list_approvals")["approvals"]] == [row.pk]
    assert "Messages of shop-dlq: 3" in ask("approve", str(row.pk), *BOB)
    assert states(letters) == {"parked"}
    assert "somebody else must approve it" in refusal(
        "approve", str(row.pk), "--reason", "x", "--by", "Ann", "--confirm"
    )
    assert ask("approve", str(row.pk), *BOB, "--confirm") == "3 messages discarded.\n"
    assert states(letters) == {"discarded"}
    assert "decided before" in refusal("approve", str(row.pk), *BOB, "--confirm")
    assert ask("list_approvals") == "No approval is open.\n"


def test_json_names_the_approval(capsys: pytest.CaptureFixture[str]) -> None:
    limited()
    with pytest.raises(CommandError):
        call_command("discard_parked", "shop-dlq", *ANN, "--confirm", "--json")
    assert json.loads(capsys.readouterr().out)["approval"] == Approval.objects.get().pk


def test_a_request_is_declined_or_done_alone(ask: Ask) -> None:
    letters = limited()
    refusal("discard_parked", "shop-dlq", *ANN, "--confirm")
    ask("decline", str(Approval.objects.get().pk), *BOB, "--confirm")
    refusal("discard_parked", "shop-dlq", *ANN, "--confirm")
    row = Approval.objects.latest("pk")
    assert "done without approval with --confirm" in ask("break_glass", str(row.pk), *ANN)
    assert ask("break_glass", str(row.pk), *ANN, "--confirm") == "1 message discarded.\n"
    assert (states(letters), row.state) == ({"discarded"}, "open")


@pytest.mark.soak
def test_a_run_is_started_by_rerun_only_with_an_approval(ask: Ask) -> None:
    (letter,) = limited()
    run = Run.objects.create(name="monday", dlq=letter.dlq, selected=1, selection={"dlq": "shop-dlq", "unnamed": True})
    Letter.objects.filter(pk=letter.pk).update(state="captured", reason="", finished_at=None, run=run, key_hash=b"k")
    assert "Add: --reason WHY" in refusal("rerun", "monday", "--by", "ann", "--enqueue", "--confirm")
    assert not Approval.objects.exists()
    refusal("rerun", "monday", *ANN, "--enqueue", "--confirm")
    run.refresh_from_db()
    assert (run.state, run.selection) == ("planned", {"dlq": "shop-dlq"})
    assert "The run monday is running." in ask("approve", str(Approval.objects.get().pk), *BOB, "--confirm")
    run.refresh_from_db()
    assert run.state == "running"


def test_the_limit_for_all_is_set_by_one_and_lifted_by_two(ask: Ask) -> None:
    said = ask("require_approvals", "--above", "100", "--reason", "policy", "--confirm")
    assert said == "Second person needed: above 100 messages. Before: only for DLQs with a limit of their own.\n"
    assert "needs a second person" in refusal("require_approvals", "--off", *ANN, "--confirm")
    assert ApprovalDefault.objects.get().above == 100
    ask("approve", str(Approval.objects.get().pk), *BOB, "--confirm")
    assert not ApprovalDefault.objects.exists()
    assert DeadLetterQueue.objects.count() == 0


def test_bad_numbers_and_names_are_refused() -> None:
    assert "No request for approval has the number 99" in refusal("approve", "99", *BOB)
    assert "No request for approval has the number x" in refusal("decline", "x", *BOB)
    assert "is not the name of one person" in refusal("decline", "1", "--reason", "x", "--by", "ann, approved by bob")
    assert "longer than 150 characters" in refusal("decline", "1", "--reason", "x", "--by", "a" * 151)
