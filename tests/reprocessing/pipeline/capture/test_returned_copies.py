"""A redrive id tells a return only in a DLQ of the attempt's target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.gateways.sqs import QueueAddress, receive
from reprocessing.models import DeadLetterQueue, Source
from reprocessing.pipeline.capture import receivers
from tests.reprocessing.pipeline.bench import Workbench, redriven

pytestmark = pytest.mark.django_db(transaction=True)

LETTER, RETURN = {"letter": "delivered"}, {"letter": "waiting"}


def _delivered() -> tuple[Workbench, dict[str, Any]]:
    bench = redriven("letter", fields={"max_attempts": 5})
    return bench, bench.delivered()[0]


def _died_in(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQS says that all messages failed in the source queue of this workbench."""

    def named(address: QueueAddress, *, wait: int, visibility: int) -> list[ReceivedMessage]:
        source = {"DeadLetterQueueSourceArn": bench.target.arn}
        found = receive(address, wait=wait, visibility=visibility)
        return [replace(message, system={**message.system, **source}) for message in found]

    monkeypatch.setattr(receivers, "receive", named)


@pytest.mark.parametrize("same_dlq", [False, True])
def test_a_message_that_failed_in_another_queue_is_a_new_letter(
    monkeypatch: pytest.MonkeyPatch, same_dlq: bool
) -> None:
    bench, sent = _delivered()
    another = Workbench()
    _died_in(another, monkeypatch)
    assert (bench if same_dlq else another).take_back(sent).captured.letters == 1
    assert same_dlq or (bench.states(), another.states()) == (LETTER, {"letter": "captured"})


def test_a_message_that_failed_in_the_target_is_a_return_in_any_dlq(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, sent = _delivered()
    another = Workbench()
    _died_in(bench, monkeypatch)
    assert another.take_back(sent).captured.returns == 1
    assert (bench.states(), another.states()) == (RETURN, {})


def test_a_message_without_a_source_is_no_return_in_an_unrelated_dlq() -> None:
    bench, sent = _delivered()
    another = Workbench()
    another.take_back(sent)
    assert (bench.states(), another.states()) == (LETTER, {"letter": "captured"})


@pytest.mark.parametrize("way", ["its own", "watching", "a source's"])
def test_a_message_without_a_source_is_a_return_in_a_dlq_of_the_target(way: str) -> None:
    bench, sent = _delivered()
    here = bench if way == "its own" else Workbench()
    if way == "watching":
        bench.judge_by_absence()
        type(bench.target).objects.filter(pk=bench.target.pk).update(watched_by=here.dlq)
    if way == "a source's":
        Source.objects.create(dlq=DeadLetterQueue.objects.get(pk=here.dlq.pk), arn=f"{here.name}", target=bench.target)
    assert here.take_back(sent).captured.returns == 1
    assert bench.states() == RETURN
