"""Nothing of a message is in a log, whatever happens to the message, and even at level DEBUG."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import DataError

from reprocessing import tasks
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import Letter
from reprocessing.pipeline.runs import drain, feed_run
from tests.redrive_service.telemetry.written import Written
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

QUOTING = "a value is too long\nDETAIL: Key (key)=(canary-key) is the one."  # not in a line of a traceback
OURS = ("reprocessing", "redrive", "redrive_service")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Written]]:
    made = {name: Written(name) for name in ("text", "json")}
    for name in OURS:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
        for handler in made.values():
            logging.getLogger(name).addHandler(handler)
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]  # what loggers remember of their level
    yield made
    for name in OURS:
        for handler in made.values():
            logging.getLogger(name).removeHandler(handler)


def drained(bench: Workbench) -> None:
    hands = drain.DrainContext(
        conf=bench.conf, rates=Rates.at(settings.REDIS_URL), dice=lambda: 0.0, owner="a drain", stop=lambda: False
    )
    drain.capture_dlq(bench.dlq, hands, on_progress=lambda _: None, seconds=10)
    run = drain.start_run(bench.dlq, name="run", asked_by="anna")
    drain.replay_run(run, hands, on_progress=lambda _: None)


def unpolled(bench: Workbench, patch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataError(QUOTING)

    patch.setattr(feed_run, "record_depth", fail)
    tasks.poll_dlqs([bench.dlq.pk])


def test_a_drain_with_failures_logs_no_body_key_or_attribute(
    written: dict[str, Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "max_attempts": 1, "mode": "manual"})
    bench.bury("canary-delivered", key="canary-key", other="canary-attribute")
    bench.bury("canary-refused", key="canary-other", other="canary-attribute")
    bench.bury("canary-parked", other="canary-attribute")
    with bench.refusing("canary-refused", poison=True):
        drained(bench)
    assert sorted(Letter.objects.filter(dlq=bench.dlq).values_list("state", flat=True)) == [
        "delivered", "parked", "parked",
    ]  # fmt: skip
    unpolled(bench, monkeypatch)
    assert {name: "canary" in handler.text for name, handler in written.items()} == {"text": False, "json": False}
    failed = written["json"].records[-1]
    assert (failed["dlq"], failed["message"]) == (bench.name, f"{bench.name} could not be polled.")
    assert failed["exception"].endswith("DataError: a value is too long")
