"""Commands count a limited number of finished messages, and say so (ADR 0062)."""

from __future__ import annotations

import pytest

from reprocessing.api.runs.run_answers import RunDetail
from reprocessing.domain.aws.pricing import Prices
from reprocessing.domain.lifecycle import LetterState
from reprocessing.management.output import run_result_output, status_json, status_output
from reprocessing.management.shared import drain_command
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
    of = "(of the newest 2 finished messages, and 2 of each other state)"
    assert f"  evidence  2 accepted {of}\n" in ask("redrive_status")
    for _ in range(2):
        add_letter(source, LetterState.DISCARDED)
    assert f"  evidence  none {of}\n" in ask("redrive_status")


def test_a_failing_rule_is_shown_with_an_estimate_of_its_messages(
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
    assert (told["asked"], told["asked_is_estimate"]) == (3, True)
    assert "  ERROR: it could not evaluate 1 of about 3 messages, which it holds: it was odd\n" in ask("redrive_status")


def test_finished_messages_of_a_large_automatic_run_are_counted_up_to_a_limit(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MAX_COUNT", 2)
    run = _automatic_run(orders, monkeypatch)
    assert ask_json("show_runs")["runs"][0]["captured"] == 3
    add_letter(run.dlq.sources.get(), LetterState.WAITING, run=run)
    (told,) = ask_json("show_runs")["runs"]
    assert (told["captured"], told["delivered"] + told["presumed"], told["waiting"]) == (3, 2, 1)
    assert told["capped"] == ["delivered", "presumed"]
    assert [told[name] for name in ("failed_attempts", "in_other_runs", "aws_requests")] == [None, None, None]
    said = "3+ messages: 1+ delivered, 1+ presumed delivered, 1 queued, failed attempts not counted"
    shown = ask("show_runs")
    assert f"  messages  {said} (at least 66 % finished)\n" in shown
    assert "messages that it sent, now in other runs: not counted, as the run is large\n" in shown
    assert "  cost      not counted, as the run is large\n" in shown
    assert f"{run.name}: {said}." in ask("pause_run", run.name, "--reason", "a test")
    api = RunDetail.read(RunStatus.read(run, count_lag=0, prices=Prices())).progress
    assert (api.messages, api.failed_attempts, api.capped) == (3, None, ["delivered", "presumed"])


def test_a_large_automatic_run_with_few_finished_messages_has_an_exact_percentage(
    ask: Ask, orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _automatic_run(orders, monkeypatch)
    add_letter(run.dlq.sources.get(), LetterState.WAITING, run=run)
    said = "4 messages: 1 delivered, 2 presumed delivered, 1 queued, failed attempts not counted (75 % finished)"
    assert f"  messages  {said}\n" in ask("show_runs")


def test_a_sum_of_counts_has_the_limits_of_each_run(orders: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MAX_COUNT", 2)
    run = _automatic_run(orders, monkeypatch)
    add_letter(run.dlq.sources.get(), LetterState.DUPLICATE, run=run)
    drain = Run.objects.create(name="monday", dlq=orders, state="running")
    add_letter(run.dlq.sources.get(), LetterState.DELIVERED, run=drain)
    counts = drain_command.tallies([run, drain])
    assert (counts["monday"].capped, counts["monday"].failed_attempts) == (frozenset(), 0)
    found = run_result_output.sum_tallies(counts.values())
    assert (found.delivered + found.presumed, found.closed_as_duplicate) == (3, 1)
    assert (found.capped, found.failed_attempts) == (frozenset({"delivered", "presumed"}), None)
    assert run_result_output.sum_tallies([counts["monday"]]) == counts["monday"]


def _automatic_run(dlq: DeadLetterQueue, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return an automatic run with three delivered messages, which is large if it has more."""
    monkeypatch.setattr(run_cost, "MAX_COUNTED", 3)
    run = Run.objects.create(name="orders-automatic", kind="automatic", dlq=dlq, state="running")
    source = add_source(dlq)
    for presumed in (False, True, True):
        add_letter(source, LetterState.DELIVERED, run=run, presumed=presumed)
    return run
