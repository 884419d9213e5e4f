"""Automatic redrive to an HTTP endpoint that answers 503 for a while, with a Celery worker and beat."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reprocessing.models import Attempt, AuditEntry, Breaker, Run, Target
from tests.faults import outage
from tests.faults.fleet import Worker
from tests.reprocessing.gateways.stand_ins import Asked, Said, standing_in
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import beat_process

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(240)]

LETTERS, KEYS = 150, 30
DOWN_FOR = 20.0
WITHIN = 150.0  # seconds, on a machine that is busy with others
#: What the sandbox's demo uses, and a cap that keeps this test short.
COOLDOWN, CAP = 2.5, 5.0
POLICY: dict[str, Any] = {
    "ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 2, "waves": True,
    "backoff_base": 1, "backoff_cap": 2,
}  # fmt: skip


@dataclass
class Shop:
    """An HTTP endpoint that answers `well_before` requests with 200, then 503 for `DOWN_FOR` seconds, then 200."""

    well_before: int
    answers: Counter[int] = field(default_factory=Counter)
    host: str = ""
    _down_since: float | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, _: Asked) -> Said:
        with self._guard:
            if self._down_since is None and self.answers.total() == self.well_before:
                self._down_since = time.monotonic()
            is_down = self._down_since is not None and time.monotonic() < self._down_since + DOWN_FOR
            status = 503 if is_down else 200
            self.answers[status] += 1
            return Said(status, b"")

    @contextmanager
    def open(self) -> Iterator[Shop]:
        with standing_in(self.answer) as server:
            self.host = server.url.removeprefix("http://")
            yield self


def automatic(shop: Shop) -> Workbench:
    """Return a DLQ in mode automatic, full of messages, whose source queue's messages go to the shop."""
    bench = Workbench(fields=POLICY, target_fields={"kind": "http"})
    url = f"http://{shop.host}/orders"
    Target.objects.filter(pk=bench.target.pk).update(arn=url, url=url)
    Breaker.objects.filter(target=bench.target).update(cooldown=COOLDOWN, cooldown_cap=CAP)
    outage.bury(bench, range(LETTERS), keys=KEYS)
    outage.give_to_beat(bench)
    return bench


def test_an_endpoint_that_is_down_for_20_seconds_gets_every_message_and_nobody_is_needed(tmp_path: Path) -> None:
    """In the first wave, in the wave of ten, and in the last one: three DLQs, each with an endpoint of its own."""
    with ExitStack() as stack:
        shops = [stack.enter_context(Shop(well_before).open()) for well_before in (0, 1, 115)]
        benches = [automatic(shop) for shop in shops]
        hosts = {"REDRIVE_OUTBOUND_HOSTS": ",".join(shop.host for shop in shops)}
        stack.enter_context(Worker(tmp_path, "worker", concurrency=2, **hosts))
        stack.enter_context(beat_process(tmp_path, **hosts))
        for bench in benches:
            outage.await_delivered(bench, LETTERS, within=WITHIN)
    for bench, shop in zip(benches, shops, strict=True):
        assert set(bench.states().values()) == {"delivered"}
        attempts = Attempt.objects.filter(letter__dlq=bench.dlq)
        assert shop.answers == {200: LETTERS, 503: attempts.filter(outcome="refused", detail__startswith="503").count()}
        assert attempts.count() == shop.answers.total()
        assert shop.answers[503] >= 1 + DOWN_FOR / (2 * CAP)  # canaries went on while it was down
    assert set(Run.objects.values_list("state", "stopped_by")) == {("running", "")}
    assert not AuditEntry.objects.exists()
