"""Automatic redrive to an HTTP endpoint that answers 503 for a while, or for ever, with a Celery worker and beat."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from redrive_service.sandbox.servers.process import RunningServer, Server
from reprocessing.models import Attempt, AuditEntry, Breaker, Run, Target
from tests.faults import outage
from tests.faults.fleet import Worker, environment
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(240),
]  # fmt: skip

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
    """An HTTP endpoint on loopback that answers 503 for some seconds, from its nth request on.

    Attributes:
        well_before: requests that it answers with 200 before it goes down.
        down_for: seconds.
        answers: how often it gave which answer.
    """

    well_before: int
    down_for: float
    answers: Counter[int] = field(default_factory=Counter)
    host: str = ""
    _down_since: float | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self) -> int:
        with self._guard:
            if self._down_since is None and self.answers.total() == self.well_before:
                self._down_since = time.monotonic()
            is_down = self._down_since is not None and time.monotonic() < self._down_since + self.down_for
            status = 503 if is_down else 200
            self.answers[status] += 1
            return status

    @property
    def url(self) -> str:
        return f"http://{self.host}/orders"

    @contextmanager
    def open(self) -> Iterator[Shop]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler) -> None:  # noqa: N805  the name is http.server's; `self` is the shop
                handler.rfile.read(int(handler.headers["Content-Length"]))
                handler.send_response(self.answer())
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(handler, *_: object) -> None:  # noqa: N805  as above
                """Write nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            self.host = f"127.0.0.1:{server.server_port}"
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


@contextmanager
def worker_and_beat(folder: Path, *shops: Shop) -> Iterator[None]:
    """Run a Celery worker with two processes, and beat; both may reach these endpoints."""
    more = {"REDRIVE_OUTBOUND_HOSTS": ",".join(shop.host for shop in shops)}
    with ExitStack() as stack:
        stack.enter_context(Worker(folder, "worker", concurrency=2, **more))
        beat = RunningServer(Server(
            name="beat", log=folder / "beat.log", environment={**environment(), **more},
            command=[sys.executable, "-m", "celery", "-A", "redrive_service", "beat", "--loglevel", "INFO"],
        ))  # fmt: skip
        stack.callback(beat.stop)
        yield


def automatic(shop: Shop, **fields: object) -> Workbench:
    """Return a DLQ in mode automatic, full of messages, whose source queue's messages go to the shop."""
    bench = Workbench(fields={**POLICY, **fields}, target_fields={"kind": "http"})
    Target.objects.filter(pk=bench.target.pk).update(arn=shop.url, url=shop.url)
    Breaker.objects.filter(target=bench.target).update(cooldown=COOLDOWN, cooldown_cap=CAP)
    outage.bury(bench, range(LETTERS), keys=KEYS)
    outage.give_to_beat(bench)
    return bench


def test_an_endpoint_that_is_down_for_20_seconds_gets_every_message_and_nobody_is_needed(tmp_path: Path) -> None:
    """In the first wave, in the wave of ten, and in the last one: three DLQs, each with an endpoint of its own."""
    with ExitStack() as stack:
        shops = [stack.enter_context(Shop(well_before, DOWN_FOR).open()) for well_before in (0, 1, 115)]
        benches = [automatic(shop) for shop in shops]
        stack.enter_context(worker_and_beat(tmp_path, *shops))
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
