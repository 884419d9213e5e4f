"""`native_redrive`: told before it is done, refused while ours is at work, seen by status, board and stop."""

from __future__ import annotations

import re

import pytest

from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering import lanes
from tests.contract.endpoints import Sandbox
from tests.race.native import is_aws_s, let_it_end, mine, tasks
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal

pytestmark = pytest.mark.django_db(transaction=True)
WHY = ("--reason", "a bulk", "--by", "anna")


def test_a_dry_run_says_how_much_where_and_what_is_lost_and_asks_nothing(ask: Ask) -> None:
    bench = mine()
    bench.bury("a")
    said = ask("native_redrive", "start", bench.name, *WHY, "--per-second", "5")
    assert f"{bench.name}: AWS would move about 1 message to their source queues, at most 5/s" in said
    assert "  costs           4 AWS requests, less than $0.01" in said
    for lost in ("order:", "history:", "ids:", "safety:", "selection:"):
        assert f"    - {lost}" in said
    assert "NOT STARTED: this was a dry run" in said
    assert (tasks(bench), is_aws_s(bench)) == ([], False)


@pytest.mark.soak
def test_it_is_started_listed_and_cancelled(ask: Ask, ask_json: AskJson) -> None:
    bench = mine()
    for number in range(30):  # at one a second: it is under way for as long
        bench.bury(f"{number}")
    to = ("--to", bench.target.arn, "--per-second", "1")
    assert "AWS moves the messages" in ask("native_redrive", "start", bench.name, *WHY, *to, "--confirm")
    assert 'by anna ("a bulk")' in ask("native_redrive", "list", bench.name)
    assert "NOT CANCELLED" in ask("native_redrive", "cancel", bench.name, *WHY)
    assert tasks(bench) == ["RUNNING"]
    assert "Cancelled." in ask("native_redrive", "cancel", bench.name, *WHY, "--confirm")
    let_it_end(bench)
    found = ask_json("native_redrive", "list", bench.name)
    assert (found["native"], [one["status"] for one in found["tasks"]]) == (None, ["CANCELLED"])
    assert f"{bench.name}: no native redrive is running." in ask("native_redrive", "list", bench.name)


def test_it_is_refused_with_what_is_in_the_way_and_the_cure() -> None:
    bench = mine()
    bench.bury("a")
    bench.ready()
    said = refusal("native_redrive", "start", bench.name, *WHY, "--confirm")
    first, under_way, hidden = said.splitlines()
    assert first == f"Nothing was done: a native redrive of {bench.name} is not possible now."
    assert under_way.endswith(f"Wait until they are finished (manage.py redrive_status {bench.name}).")
    assert hidden.startswith("- 1 captured message are invisible in SQS until ")
    assert tasks(bench) == []


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("orders", "is not the ARN of a queue"),
        ("{dlq}", "itself"),
        ("{dlq}.fifo", "needs queues of one type"),
        ("{dlq}-nowhere", "does not exist"),
        ("arn:aws:sqs:eu-north-1:000000000000:orders", "only within the account and region"),
        ("arn:aws:sqs:us-east-1:999999999999:orders", "only within the account and region"),
    ],
)
def test_a_destination_that_aws_would_refuse_is_refused_before_anything_is_claimed(to: str, why: str) -> None:
    bench = mine()
    asked = ("native_redrive", "start", bench.name, *WHY, "--to", to.format(dlq=bench.dlq.arn))
    assert why in refusal(*asked)
    assert why in refusal(*asked, "--confirm")
    assert not is_aws_s(bench)


def test_what_aws_refuses_is_said(sandbox: Sandbox) -> None:
    bench = mine()
    refused = {"status": 400, "code": "ResourceNotFoundException", "message": "It is gone"}
    sandbox.plan({"kind": "error", "action": "StartMessageMoveTask", **refused})
    said = refusal("native_redrive", "start", bench.name, *WHY, "--to", bench.target.arn, "--confirm")
    assert said.startswith("AWS did not start it: ResourceNotFoundException: ")
    assert re.search(r"[^.]\. Nothing was moved\.$", said)
    assert not is_aws_s(bench)


def test_status_board_drain_and_stop_say_that_aws_is_at_work(ask: Ask) -> None:
    bench = mine()
    bench.bury("a")
    DeadLetterQueue.objects.update(
        aws_redrive_since=lanes.database_now(),
        aws_redrive_by="anna",
        aws_redrive_reason="a bulk",
        aws_redrive_task="h",
        aws_redrive_last_task_at=None,
    )
    (watch,) = dlq_status.dlq_statuses(bench.dlq.pk)
    assert watch.native.startswith("A redrive by AWS has run since ")
    assert watch.last_error == ""
    assert 'as anna asked ("a bulk"): nothing is captured' in ask("redrive_status", bench.name)
    said = ask("stop_redrive", bench.name, *WHY, "--confirm")
    assert f"manage.py native_redrive cancel {bench.name} --reason WHY --confirm" in said
    follow_redrives.sweep()
    assert not is_aws_s(bench)
