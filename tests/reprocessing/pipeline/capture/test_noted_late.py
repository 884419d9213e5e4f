"""What is noted late is out of sight from when SQS was asked to hide it, and not from when that was noted."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reprocessing.domain.message.envelope import Arrival
from reprocessing.gateways.sqs import Extended, extend, receive
from reprocessing.models import Custody
from reprocessing.pipeline.capture import receivers
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import lease_keeper
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Workbench, enqueued, redriven, ticking

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_copy_written_late_is_hidden_from_when_it_was_received(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is out of sight from when SQS was asked; and then PostgreSQL did not answer for longer than that lasts."""
    bench = redriven("back")
    bench.bury("known")
    bench.capture()
    handle = Custody.objects.get(state="held").handle
    bench.sqs.change_message_visibility(QueueUrl=bench.dlq_url, ReceiptHandle=handle, VisibilityTimeout=0)
    bench.come_back(bench.delivered()[0])
    bench.bury("new")
    late = [0]

    def received(*args: Any, **options: Any) -> list[Arrival]:  # noqa: ANN401  those of receive
        arrived = receive(*args, **options)
        late[0] = bench.conf.receive_visibility - 4
        return arrived

    with monkeypatch.context() as patch:
        patch.setattr(receivers, "receive", received)
        patch.setattr(lease_keeper, "time", ticking(lambda: time.monotonic() + late[0]))
        captured = bench.capture().captured
    assert (captured.letters, captured.returns, captured.known) == (1, 1, 1)
    held = Custody.objects.filter(state="held")
    assert [one.visible_until <= lanes.clock() + timedelta(seconds=4) for one in held] == [True, True]
    clock.advance(4)
    bench.enlist()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert Custody.objects.filter(extended=True).count() == 0


def test_a_longer_visibility_noted_late_counts_from_the_request(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _about_to_be_extended(clock)
    _after_extending(monkeypatch, lambda: clock.advance(1000))
    asked = lanes.clock()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert round((Custody.objects.get().visible_until - asked).total_seconds(), -2) == round(
        recover.LONGEST - bench.conf.receive_visibility, -2
    )


def test_a_copy_received_again_meanwhile_is_not_noted_as_extended(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _about_to_be_extended(clock)
    _after_extending(monkeypatch, lambda: Custody.objects.update(handle="a later one"))
    recover.sweep(bench.dlq, conf=bench.conf)
    assert Custody.objects.get().extended is False


def _about_to_be_extended(clock: Clock) -> Workbench:
    bench = enqueued("letter")
    clock.advance(bench.conf.receive_visibility * 2 / 3 + 1)
    return bench


def _after_extending(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """This, between the answer of SQS and what is noted of it."""

    def froze(*args: Any) -> Extended:  # noqa: ANN401  those of extend
        done = extend(*args)
        happens()
        return done

    monkeypatch.setattr(recover, "extend", froze)
