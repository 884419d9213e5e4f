"""An endpoint for reports that answers as it is told, and records what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from celery import _state, signals


@dataclass(slots=True)
class Stub:
    """What it answers, and what it was sent."""

    status: int = 200
    answer: bytes = b'{"accepted": 1, "repeated": 0, "refused": []}'
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    let_go: threading.Event = field(default_factory=threading.Event)
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    @property
    def batches(self) -> list[list[dict[str, Any]]]:
        """The reports of each request."""
        return [one["body"]["reports"] for one in self.asked]

    @property
    def reports(self) -> list[dict[str, Any]]:
        """All reports, in order."""
        return [report for batch in self.batches for report in batch]


@contextmanager
def listening() -> Iterator[Stub]:
    """Run a stub on a loopback port."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            stub.asked.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)})
            if stub.hangs:
                stub.let_go.wait(600)
            self.send_response(stub.status)
            for name, value in stub.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(stub.answer)))
            self.end_headers()
            self.wfile.write(stub.answer)

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client has gone
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/reports"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def unhooked() -> Iterator[None]:
    """Restore the receivers of Celery's signals, and the tasks of other apps, after the block."""
    hooked = (
        signals.task_failure, signals.task_retry, signals.task_success, signals.before_task_publish,
        signals.task_received, signals.worker_process_shutdown,
    )  # fmt: skip
    before = [(one, list(one.receivers or [])) for one in hooked]
    current, shared = _state.get_current_app(), set(_state._on_app_finalizers)  # type: ignore[attr-defined]  # private
    yield
    _state._set_current_app(current)  # type: ignore[attr-defined]  # as above
    _state._on_app_finalizers.intersection_update(shared)  # type: ignore[attr-defined]  # as above
    for one, receivers in before:
        one.receivers = receivers
        one.sender_receivers_cache.clear()  # type: ignore[attr-defined]  # not in Celery's stubs
