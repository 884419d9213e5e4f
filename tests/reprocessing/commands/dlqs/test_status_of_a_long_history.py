"""Commands count a limited number of finished messages, and say so (ADR 0062)."""

from __future__ import annotations

import pytest

from reprocessing.api.runs.run_answers import RunDetail
from reprocessing.domain.aws.pricing import Prices
from reprocessing.domain.lifecycle import LetterState
from reprocessing.management.output import status_json, status_output
from reprocessing.models import DeadLetterQueue, Rule, Run
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.routing import rules
from reprocessing.store.runs import progress, run_cost
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.stock import add_letter, add_source

pytestmark = pytest.mark.django_db


def test_evidence_of_a_part_of_the_messages_is_shown_as_such(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = add_source(orders)
    for module in (delivery_status, status_json, status_output):
        monkeypatch.setattr(module, "MAX_OF_PART", 2)
    for state in (LetterState.DELIVERED, LetterState.DELIVERED, LetterState.CAPTURED):
        add_letter(source, state)
    assert "  evidence  2 accepted\n" in ask("redrive_status")
    add_letter(source, LetterState.DELIVERED)
    told = ask_json("redrive_status")["dlqs"][0]
    assert (told["messages"]["delivered"], told["known"], told["known_is_part"]) == (3, {"accepted": 2}, True)
    assert "  evidence  2 accepted (of at most 2 messages of each state)\n" in ask("redrive_status")


def test_share_of_a_failing_rule_is_shown_with_the_least_number_of_its_messages(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_OF_PART", 2)
    source = add_source(orders)
    for _ in range(3):
        add_letter(source, LetterState.DELIVERED, rulebook_version=1)
    Rule.objects.create(
        name="odd", action="hold", enabled=True, error_count=1, last_error="it was odd", created_by="ann"
    )
    (told,) = ask_json("redrive_status")["rules"]
    assert (told["asked"], told["asked_is_minimum"]) == (2, True)
    assert "  ERROR: it could not evaluate 1 of at least 2 messages, which it holds: it was odd\n" in ask(
        "redrive_status"
    )


def test_finished_messages_of_a_large_automatic_run_are_counted_up_to_a_limit(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_cost, "MAX_COUNTED", 3)
    monkeypatch.setattr(progress, "MAX_COUNT", 2)
    run = Run.objects.create(name="orders-automatic", kind="automatic", dlq=orders, state="running")
    source = add_source(orders)
    for presumed in (False, True, True):
        add_letter(source, LetterState.DELIVERED, run=run, presumed=presumed)
    assert ask_json("show_runs")["runs"][0]["captured"] == 3
    add_letter(source, LetterState.WAITING, run=run)
    (told,) = ask_json("show_runs")["runs"]
    assert (told["captured"], told["delivered"] + told["presumed"], told["waiting"]) == (3, 2, 1)
    assert told["capped"] == ["delivered", "presumed"]
    assert [told[name] for name in ("failed_attempts", "in_other_runs", "aws_requests")] == [None, None, None]
    said = "3+ messages: 1+ delivered, 1+ presumed delivered, 1 queued"
    assert f"  messages  {said} (at least 66 % finished)\n" in ask("show_runs")
    assert f"{run.name}: {said}." in ask("pause_run", run.name, "--reason", "a test")
    shown = RunDetail.read(RunStatus.read(run, count_lag=0, prices=Prices())).progress
    assert (shown.messages, shown.failed_attempts) == (3, None)
