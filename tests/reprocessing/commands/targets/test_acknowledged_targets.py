"""Targets whose consumers are to say what became of letters: what `add_dlq` says of them, and `redrive_status`."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from reprocessing.models import DeadLetterQueue, Target
from tests.contract.queues import redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.stock import add_sent, add_source, ago
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db


def test_add_dlq_says_what_silence_comes_to_and_who_may_report(ask: Ask, make_queue: MakeQueue) -> None:
    shop, elsewhere, dlq = make_queue(), make_queue(), make_queue()
    shop.set(RedrivePolicy=redrive_policy(dlq, 2), VisibilityTimeout="60")
    asked = ("add_dlq", "orders", "--url", dlq.url, "--outcome", "acknowledged", "--window", "600")
    told = ask(*asked, "--source", elsewhere.url, "--confirm")
    silent = "A message that the consumer of {} does not report for about 10 minutes is"
    assert f"{silent.format(shop.name)} presumed delivered once its absence is proved." in told
    assert f"{silent.format(elsewhere.name)} parked, without other evidence." in told
    nobody = "No consumer may report outcomes yet of messages to {}."
    assert [nobody.format(one.name) in told for one in (shop, elsewhere)] == [True, True]
    assert set(Target.objects.values_list("proof", "window")) == {("acknowledged", 600)}

    call_command("add_reporter", "worker", "--target", shop.name, "--confirm")
    told = ask(*asked, "--source", elsewhere.url)
    assert [nobody.format(one.name) in told for one in (shop, elsewhere)] == [False, True]


def test_the_status_says_whose_word_is_waited_for(ask_json: AskJson, add_row: AddRow) -> None:
    dlq = add_row("orders")
    source = add_source(dlq, window=90, proof="acknowledged", watched_by=None)

    def waits_for() -> str:
        return str(ask_json("redrive_status", "orders")["dlqs"][0]["targets"][0]["waits_for"])

    attempt = add_sent(source, taken_at=ago(seconds=30), deadline=ago(seconds=-50))
    assert waits_for().startswith("its consumer's report on the oldest message, until ")
    attempt.delete()
    add_sent(source, taken_at=ago(seconds=300), deadline=ago(seconds=200))
    over = "nothing: its consumer did not report in time, so the oldest message will be parked"
    assert waits_for() == over
    Target.objects.update(watched_by=dlq)
    assert waits_for().startswith("shop has not been empty since it received the oldest message")
    DeadLetterQueue.objects.update(mode="observe")
    assert waits_for() == over


def test_add_target_says_that_nobody_may_report(ask: Ask) -> None:
    function = "arn:aws:lambda:eu-west-1:111122223333:function:ship"
    asked = ("add_target", function, "--outcome", "acknowledged", "--window", "600")
    nobody = "No consumer may report outcomes yet of messages to ship."
    assert nobody in ask(*asked, "--confirm")
    ask("add_reporter", "worker", "--target", "ship", "--confirm")
    assert nobody not in ask(*asked)
