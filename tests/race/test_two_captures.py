"""A turn at a dlq enlists what its capture knows to be all there was; what another one has begun to write waits."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.runs import plan
from reprocessing.store.runs import plans
from reprocessing.store.runs.plans import Asked
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

KEYED: dict[str, Any] = {"mode": "automatic", "ordering_key": "attribute:key", "sequence": "attribute:n"}


def _half_captured(bench: Workbench) -> None:
    """Two letters of a key lie in the dlq. Another capture has written the later one, and not the earlier one yet."""
    bench.bury("k1", key="K", n="1")
    (earlier,) = bench.sqs.receive_message(QueueUrl=bench.dlq_url, VisibilityTimeout=600)["Messages"]
    bench.bury("k2", key="K", n="2")
    found = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    capture.letters(found, conf=bench.conf, dice=lambda: 0.0, seconds=10, receivers=1)
    bench.sqs.change_message_visibility(
        QueueUrl=bench.dlq_url, ReceiptHandle=earlier["ReceiptHandle"], VisibilityTimeout=0
    )


def _while_it_gives_places(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn at the dlq whose capture has ended, and which finds that much to place that another one begins."""
    places, begun = plan.places, list[int]()

    def slow(dlq: DeadLetterQueue) -> int:
        done = places(dlq)
        if not begun:
            begun.append(1)
            _half_captured(bench)
            done += places(dlq)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(plan, "places", slow)
        bench.capture()


def test_what_another_capture_has_begun_to_write_is_enlisted_when_it_has_run_dry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench(fields=KEYED)
    bench.bury("first", key="other", n="0")
    _while_it_gives_places(bench, monkeypatch)
    bench.replay()
    assert bench.states() == {"first": "delivered", "k2": "captured"}
    bench.capture()
    bench.replay()
    assert [one["MessageAttributes"]["n"]["StringValue"] for one in bench.delivered()] == ["0", "1", "2"]


def test_a_plan_that_waits_for_the_dlq_gets_what_had_run_dry(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields={**KEYED, "mode": "manual"})
    run = plans.plan(bench.dlq, Asked("monday", "anna"))
    bench.bury("first", key="other", n="0")
    _while_it_gives_places(bench, monkeypatch)
    run.refresh_from_db()
    assert (run.selected, bench.letter(payload__body=b"k2").run_id) == (1, None)
