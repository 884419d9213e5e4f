"""A task that was changed on its way is still the letter when it comes back: Celery workers hand nothing on."""

from __future__ import annotations

import json

import pytest

from reprocessing.models import DeadLetter, Target
from tests import envelopes
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

RESETS = {"kind": "celery", "resets_retries": True}


def tried(queue: str) -> str:
    """A task message whose three retries are spent."""
    document = envelopes.document(lambda app: app.send_task("shop.charge", (1,), queue=queue), queue=queue)
    document["headers"]["retries"] = 3
    return json.dumps(document)


def replayed(bench: Workbench, body: str) -> None:
    bench.bury(body)
    bench.ready()


def test_one_whose_retries_were_reset_is_known_when_it_comes_back_and_goes_again() -> None:
    bench = Workbench(target_fields=RESETS)
    body = tried(bench.name)
    replayed(bench, body)
    bench.replay()
    [sent] = bench.delivered()
    assert envelopes.opened(sent["Body"].encode())["headers"]["retries"] == 0
    assert sent["Body"] != body
    bench.come_back(sent)
    captured = bench.capture().captured
    assert (captured.returns, captured.letters) == (1, 0)
    assert bench.history() == [(1, "accepted", 0)]
    assert (bench.letter().state, bytes(bench.letter().payload.body).decode()) == ("waiting", body)
    bench.replay()
    assert bench.history() == [(1, "accepted", 0), (2, "accepted", 1)]


def test_one_that_was_diverted_too() -> None:
    bench = Workbench(target_fields=RESETS)
    url = bench.queue(f"{bench.name}-other")
    other = Target.objects.create(arn=bench.arn(url), url=url, region="eu-west-1", rate=None, **RESETS)
    body = tried(bench.name)
    replayed(bench, body)
    DeadLetter.objects.filter(dlq=bench.dlq).update(target=other)
    bench.replay()
    [sent] = bench.delivered(url)
    delivery = envelopes.opened(sent["Body"].encode())["properties"]["delivery_info"]
    assert delivery["routing_key"] == f"{bench.name}-other"
    bench.come_back(sent)
    captured = bench.capture().captured
    assert (captured.returns, captured.letters) == (1, 0)
    assert bench.letter().state == "waiting"


def test_of_another_kind_of_target_a_changed_body_is_a_letter_of_its_own() -> None:
    """Whoever changed it handed it on."""
    bench = Workbench()
    replayed(bench, "as it was")
    bench.replay()
    [sent] = bench.delivered()
    bench.come_back({**sent, "Body": "changed"})
    captured = bench.capture().captured
    assert (captured.returns, captured.letters) == (0, 1)
